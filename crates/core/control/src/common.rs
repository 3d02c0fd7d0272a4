//! What the members of a fleet have to hold in common, so that each gets its share: the law, the
//! version of its formula, and its parameters. Each member announces it, and names the members that
//! hold something else.

use std::fmt;

use strum::VariantArray as _;
use wakeai_units::Duration;

use crate::{ControllerConfig, LawConfig, LawName, Share};

/// The version of the formula of the law `airtime`. It rises with each change after which stations of
/// the former version and of the new one would hold different windows in the same place. Version 1,
/// with a target of two rounds and at least 20 ms, was never announced. Version 2 took the path from
/// the median of the delays alone. Version 3 took another limit from which the bottleneck is beyond the
/// air. Version 4 did not follow what the stations deliver where others share the channel. Version 5 had
/// no common trial of uploads. In version 6 one announced rate could lengthen the target of all. In version 7 one member without a
/// PHY rate made all weights equal, and the queue of downloads had a larger part of the path. Version 8 took stations that join for strangers, and had a limit between whole aggregates. In version 9 a joined station kept a
/// longer path, and beside the other direction a station with more than its peers held the window of all. In version 10 a release went on
/// where its strangers turned out to have agents. Version 11 had contests of uploads, and took what they delivered after shorter windows for what the channel leaves.
/// Version 12 took old announcements for results of a trial, checked paths where all were behind, and stations that joined a long queue kept a longer window.
/// Version 13 repeated a trial that told nothing after four seconds. In version 14 a trial ended where the messages of
/// all peers were lost, queues beside downloads were longer, and stations at about 6 Mbit/s had up to a share and a half. In version 15
/// windows did not follow the channel before a trial, and those that followed were long enough for 98.5 % of the goodput.
/// Version 16 found strangers more slowly whose queue stayed long in a trial. Version 17 had a longer queue with room in the air, and compared
/// the queue in a trial with the present target alone. After a first trial in which others began it waited for 16 s.
pub const AIRTIME_VERSION: u8 = 18;
/// The version of the formulas of `shimada-before` and `shimada-after`. In version 1 the floor followed from what the stations deliver.
const SHIMADA_VERSION: u8 = 2;
/// The version of all other laws.
const FIRST_VERSION: u8 = 1;

/// The number of a law in messages: 0 is `none`, an agent that bounds nothing, and the others are in
/// the order of [`LawName::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LawNumber(pub u8);

impl LawNumber {
    fn of(law: Option<&LawConfig>) -> Self {
        Self(law.map_or(0, |law| law.name() as u8 + 1))
    }

    /// Whether the bounds of this law follow from the access point's buffer.
    fn uses_buffer(self) -> bool {
        self.0 >= 2
    }
}

impl fmt::Display for LawNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match LawName::ALL.get(usize::from(self.0).wrapping_sub(1)) {
            _ if self.0 == 0 => f.write_str("none"),
            Some(name) => write!(f, "{name}"),
            None => write!(f, "law number {}, which this agent does not know", self.0),
        }
    }
}

/// The parameters of the law `airtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueParameters {
    /// [`AirtimeKnobs::queue_rounds_percent`](crate::AirtimeKnobs::queue_rounds_percent).
    pub rounds_percent: u16,
    /// [`AirtimeKnobs::queue_min`](crate::AirtimeKnobs::queue_min), whole microseconds.
    pub min: Duration,
    /// [`AirtimeKnobs::queue_max`](crate::AirtimeKnobs::queue_max), whole microseconds.
    pub max: Duration,
}

/// What a station holds and all others have to hold, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommonLaw {
    /// The law.
    pub law: LawNumber,
    /// The version of the law's formula, above zero.
    pub version: u8,
    /// The parameters, where the law has them.
    pub queue: Option<QueueParameters>,
    /// The access point's buffer in packets, as configured, above zero.
    pub access_point_buffer: u32,
    /// The share of the airtime that all stations together may reserve.
    pub reservable: Share,
}

impl CommonLaw {
    /// What a station with this law (`None` where it bounds nothing) and this configuration holds.
    pub fn new(law: Option<&LawConfig>, config: &ControllerConfig) -> Self {
        let number = LawNumber::of(law);
        let micros = |span: Duration| Duration::from_micros(span.as_micros());
        let queue = match law {
            Some(LawConfig::Airtime(knobs)) => Some(QueueParameters {
                rounds_percent: u16::try_from(knobs.queue_rounds_percent).unwrap_or(u16::MAX),
                min: micros(knobs.queue_min),
                max: micros(knobs.queue_max),
            }),
            _ => None,
        };
        let version = match law.map(LawConfig::name) {
            Some(LawName::Airtime) => AIRTIME_VERSION,
            Some(LawName::ShimadaBefore | LawName::ShimadaAfter) => SHIMADA_VERSION,
            Some(LawName::Fixed) | None => FIRST_VERSION,
        };
        Self {
            law: number,
            version,
            queue,
            access_point_buffer: config.access_point_buffer.max(1),
            reservable: config.reservable,
        }
    }

    /// What `theirs` has that differs from this. Parameters are compared only under the same version
    /// of the same law, because those of another one may mean something else.
    pub fn differences(&self, theirs: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |what, own: String, theirs: String| {
            if own != theirs {
                found.push(Difference { what, own, theirs });
            }
        };
        let same_law = self.law == theirs.law;
        compare(Differing::Law, self.law.to_string(), theirs.law.to_string());
        if same_law {
            compare(Differing::Version, self.version.to_string(), theirs.version.to_string());
        }
        if let (true, Some(own), Some(theirs)) =
            (same_law && self.version == theirs.version, self.queue, theirs.queue)
        {
            let percent = |of: QueueParameters| of.rounds_percent.to_string();
            compare(Differing::QueueRoundsPercent, percent(own), percent(theirs));
            compare(Differing::QueueMin, own.min.to_string(), theirs.min.to_string());
            compare(Differing::QueueMax, own.max.to_string(), theirs.max.to_string());
        }
        if self.law.uses_buffer() && theirs.law.uses_buffer() {
            let buffer = |of: &Self| of.access_point_buffer.to_string();
            compare(Differing::AccessPointBuffer, buffer(self), buffer(theirs));
        }
        let percent = |of: &Self| (of.reservable.ppm() / 10_000).to_string();
        compare(Differing::ReservablePercent, percent(self), percent(theirs));
        found
    }
}

/// Something that the members have to hold in common, and that differs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum Differing {
    /// The law.
    #[strum(serialize = "law.name")]
    Law,
    /// The version of the law's formula.
    #[strum(serialize = "law.version")]
    Version,
    /// The parameter `law.queue_rounds_percent`.
    #[strum(serialize = "law.queue_rounds_percent")]
    QueueRoundsPercent,
    /// The parameter `law.queue_min`.
    #[strum(serialize = "law.queue_min")]
    QueueMin,
    /// The parameter `law.queue_max`.
    #[strum(serialize = "law.queue_max")]
    QueueMax,
    /// The configured buffer of the access point.
    #[strum(serialize = "access_point.buffer")]
    AccessPointBuffer,
    /// The part of the airtime that may be reserved.
    #[strum(serialize = "access_point.reservable_percent")]
    ReservablePercent,
}

impl Differing {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The key in the agent's configuration; `law.version` for the version, which the program sets.
    pub fn key(self) -> &'static str {
        self.into()
    }
}

/// A difference between what two stations hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// What differs.
    pub what: Differing,
    /// What this station holds.
    pub own: String,
    /// What the other station holds.
    pub theirs: String,
}

/// What is known of the law of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerLaw {
    /// No message has said it yet. Messages that are full of answers leave it out.
    #[default]
    Unknown,
    /// The peer had room to announce its law and did not: its agent is of an earlier version.
    Unannounced,
    /// The peer holds this.
    Holds(CommonLaw),
}

impl PeerLaw {
    /// Whether the peer may hold something else than a station that holds `own`.
    pub fn differs(&self, own: &CommonLaw) -> bool {
        match self {
            Self::Unknown => false,
            Self::Unannounced => true,
            Self::Holds(theirs) => !own.differences(theirs).is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AirtimeKnobs, StationId};

    fn held(law: LawName, change: impl FnOnce(&mut ControllerConfig)) -> CommonLaw {
        let mut config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        change(&mut config);
        CommonLaw::new(Some(&LawConfig::new(law)), &config)
    }

    fn keys(own: &CommonLaw, theirs: &CommonLaw) -> Vec<&'static str> {
        own.differences(theirs).iter().map(|of| of.what.key()).collect()
    }

    #[test]
    fn equal_configurations_hold_the_same() {
        for &law in LawName::ALL {
            let own = held(law, |_| ());
            assert_eq!(own.law.to_string(), law.as_str());
            assert!(!PeerLaw::Holds(own).differs(&own));
            assert!(PeerLaw::Unannounced.differs(&own) && !PeerLaw::Unknown.differs(&own));
        }
        let config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        assert_eq!(CommonLaw::new(None, &config).law.to_string(), "none");
        let versions: Vec<u8> = LawName::ALL.iter().map(|&law| held(law, |_| ()).version).collect();
        assert_eq!(
            versions,
            [FIRST_VERSION, SHIMADA_VERSION, SHIMADA_VERSION, AIRTIME_VERSION],
            "fixed, the laws of the papers, airtime"
        );
    }

    #[test]
    fn each_parameter_of_the_law_is_compared() {
        let config = ControllerConfig::new(StationId(1), [2; 6], [7; 32]);
        let with = |change: fn(&mut AirtimeKnobs)| {
            let mut knobs = AirtimeKnobs::default();
            change(&mut knobs);
            CommonLaw::new(Some(&LawConfig::Airtime(knobs)), &config)
        };
        let own = with(|_| ());
        assert_eq!(
            keys(&own, &with(|of| of.queue_rounds_percent = 99)),
            ["law.queue_rounds_percent"]
        );
        assert_eq!(
            keys(&own, &with(|of| of.queue_min = Duration::from_millis(2))),
            ["law.queue_min"]
        );
        let longer = with(|of| of.queue_max = Duration::from_micros(75_001));
        assert_eq!(keys(&own, &longer), ["law.queue_max"]);
        let found = &own.differences(&longer)[0];
        assert_eq!((found.own.as_str(), found.theirs.as_str()), ("75ms", "75.001ms"));
        let other = held(LawName::Airtime, |of| of.access_point_buffer = 75);
        assert_eq!(keys(&own, &other), ["access_point.buffer"]);
        let other = held(LawName::Airtime, |of| of.reservable = Share::ZERO);
        assert_eq!(keys(&own, &other), ["access_point.reservable_percent"]);
    }

    #[test]
    fn parameters_of_another_law_or_version_are_not_compared() {
        let own = held(LawName::Airtime, |_| ());
        assert_eq!(keys(&own, &held(LawName::ShimadaAfter, |_| ())), ["law.name"]);
        let knobs = QueueParameters { max: Duration::from_secs(1), ..own.queue.unwrap() };
        let newer = CommonLaw { version: own.version + 1, queue: Some(knobs), ..own };
        assert_eq!(keys(&own, &newer), ["law.version"]);
        let by_hand = held(LawName::Fixed, |of| of.access_point_buffer = 9);
        assert_eq!(keys(&own, &by_hand), ["law.name"], "bounds by hand use no buffer");
    }

    #[test]
    fn a_law_of_a_later_program_has_a_number() {
        let own = held(LawName::Airtime, |_| ());
        let later = CommonLaw { law: LawNumber(9), ..own };
        assert!(own.differences(&later)[0].theirs.contains("number 9"));
    }
}
