//! The controller of the current association, and its latest events.

use std::collections::VecDeque;
use std::io;

use nix::time::ClockId;
use wakeai_api::config::{Bssid, Config};
use wakeai_control::{
    Clocks, CommonLaw, Controller, ControllerConfig, Event, LawConfig, PeerChange,
    PresenceCounters, Share, StationId,
};
use wakeai_host::{read_clock, since_boot};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::counters::{self, Named};
use crate::identity;
use crate::key::GroupKeys;

/// The number of latest events that the API shows.
const HISTORY: usize = 32;

/// Holds the controller of the current association. Each association has a new controller, because
/// the peers at another access point are other stations.
pub(crate) struct AssociatedController {
    law: LawConfig,
    /// What this station holds and all others have to hold, too.
    pub(crate) common_law: CommonLaw,
    template: ControllerConfig,
    current: Option<(Bssid, Controller)>,
    past: Named,
    /// What the last logged bounds follow from, in words.
    reasons: Vec<String>,
    history: VecDeque<String>,
}

impl AssociatedController {
    pub(crate) fn new(config: &Config, station: u64, keys: GroupKeys) -> Self {
        let mut template = ControllerConfig::new(StationId(station), [0; 6], keys.signing);
        template.accepted_keys = keys.accepted;
        template.access_point_buffer = config.access_point.buffer;
        template.basic_rate = config.access_point.basic_rate;
        template.max_rate = config.max;
        template.max_down_rate = config.max_down;
        template.reserve = config.reserve;
        template.reservable = Share::from_percent(config.access_point.reservable_percent);
        template.clocks = config.presence.clock_tolerance.map_or(Clocks::Free, |tolerance| {
            Clocks::Synchronised { unix_at_epoch: unix_at_epoch(), tolerance }
        });
        let common_law = CommonLaw::new(config.law.as_ref(), &template);
        template.common_law = Some(common_law);
        // If the configuration names no law, the controller runs a law that limits nothing.
        let law = config.law.clone().unwrap_or(LawConfig::UNBOUND);
        Self {
            law,
            common_law,
            template,
            current: None,
            past: counters::presence(&PresenceCounters::default()),
            reasons: Vec::new(),
            history: VecDeque::new(),
        }
    }

    pub(crate) fn station(&self) -> StationId {
        self.template.station_id
    }

    pub(crate) fn bssid(&self) -> Option<Bssid> {
        self.current.as_ref().map(|(bssid, _)| *bssid)
    }

    /// Sets the access point with which the station is associated. Returns whether the access point
    /// has changed.
    pub(crate) fn associate(&mut self, now: Instant, bssid: Option<Bssid>) -> io::Result<bool> {
        if bssid == self.bssid() {
            return Ok(false);
        }
        let next = match bssid {
            Some(bssid) => {
                let mut config = self.template.clone();
                config.bssid = bssid.0;
                let boot_id = identity::boot_id()?;
                Some((bssid, Controller::new(now, &config, boot_id, &self.law)))
            }
            None => None,
        };
        if let Some((_, last)) = &self.current {
            let last = counters::presence(last.counters());
            self.past = counters::sum(std::mem::take(&mut self.past), last);
        }
        self.current = next;
        self.reasons.clear();
        let access_point = bssid.map_or("none".to_owned(), |bssid| bssid.to_string());
        tracing::info!(access_point, "association changed");
        Ok(true)
    }

    /// Asks the peers to leave `rate` free, from the next tick on. The agent repeats the request at
    /// later access points.
    pub(crate) fn reserve(&mut self, rate: Option<Rate>) {
        self.template.reserve = rate;
        if let Some(controller) = self.controller_mut() {
            controller.reserve(rate);
        }
    }

    /// Tells the controller how many bytes the station's transfers have left. `None` means that the
    /// station has no transfers.
    pub(crate) fn transfer(&mut self, now: Instant, left: Option<Bytes>) {
        if let Some(controller) = self.controller_mut() {
            controller.transfer(now, left);
        }
    }

    /// The rate that the peers are asked to leave free.
    pub(crate) fn wanted(&self) -> Option<Rate> {
        self.template.reserve
    }

    /// Authenticates messages with these keys from now on. The known peers stay.
    pub(crate) fn set_keys(&mut self, keys: GroupKeys) {
        if let Some((_, controller)) = &mut self.current {
            controller.set_keys(&keys.signing, &keys.accepted);
        }
        (self.template.group_key, self.template.accepted_keys) = (keys.signing, keys.accepted);
    }

    /// Reads the system's clock again, because it may have been set.
    pub(crate) fn read_clock(&mut self) {
        let unix = unix_at_epoch();
        if let Clocks::Synchronised { unix_at_epoch, .. } = &mut self.template.clocks {
            *unix_at_epoch = unix;
        }
        if let Some((_, controller)) = &mut self.current {
            controller.set_unix_at_epoch(unix);
        }
    }

    pub(crate) fn controller(&self) -> Option<&Controller> {
        self.current.as_ref().map(|(_, controller)| controller)
    }

    pub(crate) fn controller_mut(&mut self) -> Option<&mut Controller> {
        self.current.as_mut().map(|(_, controller)| controller)
    }

    /// Logs the controller's events, and keeps the latest events for the API.
    pub(crate) fn log_events(&mut self) {
        let Some((_, controller)) = &mut self.current else { return };
        while let Some(event) = controller.poll_event() {
            match &event {
                Event::Decision(decision) => {
                    let (law, bounds, reasons) =
                        (decision.law, decision.bounds, decision.reasons());
                    tracing::debug!(law = law.as_str(), %bounds, why = reasons.join("; "), "bounds");
                    if reasons == self.reasons {
                        continue;
                    }
                    self.reasons = reasons;
                }
                Event::Reservation { rate, state, .. } => {
                    let rate = rate.map(|rate| rate.to_string());
                    tracing::info!(rate, state = %state, "reservation");
                }
                Event::Peer { change: change @ PeerChange::HoldsOther { .. }, .. } => {
                    tracing::warn!(
                        event = %change,
                        "all stations have to hold the same law: `wakeai status` says what to do",
                    );
                }
                other => tracing::info!(event = %other, "presence"),
            }
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back(event.to_string());
        }
    }

    /// The latest events, the newest last.
    pub(crate) fn history(&self) -> Vec<String> {
        self.history.iter().cloned().collect()
    }

    /// The counters of the presence messages of all associations.
    pub(crate) fn counters(&self) -> Named {
        let current = self.controller().map(|current| counters::presence(current.counters()));
        counters::sum(self.past.clone(), current.unwrap_or_default())
    }
}

/// The Unix time at the epoch of [`since_boot`].
fn unix_at_epoch() -> Duration {
    read_clock(ClockId::CLOCK_REALTIME).saturating_since(since_boot())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> AssociatedController {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        GroupKeys::generate(&path).unwrap();
        let text =
            "interface = \"wlan0\"\nkey_file = \"k\"\n[law]\nname = \"fixed\"\nceiling = 9\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.bssid, None);
        AssociatedController::new(&config, 7, GroupKeys::load(&path).unwrap())
    }

    #[test]
    fn without_access_point_nothing_is_sent_and_nothing_is_bound() {
        let mut controller = controller();
        assert!(controller.controller_mut().is_none());
        controller.log_events();
        assert!(controller.controller().is_none() && controller.history().is_empty());
    }

    #[test]
    fn counters_outlive_the_association() {
        let mut controller = controller();
        let now = Instant::from_nanos(1);
        assert!(controller.associate(now, Some(Bssid([2; 6]))).unwrap());
        assert!(!controller.associate(now, Some(Bssid([2; 6]))).unwrap());
        controller.controller_mut().unwrap().handle_datagram(now, b"x");
        assert!(controller.associate(now, Some(Bssid([4; 6]))).unwrap());
        controller.controller_mut().unwrap().handle_datagram(now, b"y");
        assert_eq!(controller.counters()["malformed"], 2);
    }

    #[test]
    fn a_reservation_outlives_the_association() {
        let mut controller = controller();
        let now = Instant::from_nanos(1);
        controller.associate(now, Some(Bssid([2; 6]))).unwrap();
        let wanted = |of: &AssociatedController| of.controller().unwrap().reservation().0;
        assert_eq!(wanted(&controller), None);
        let rate = Some(Rate::from_mbps(5));
        controller.reserve(rate);
        assert_eq!((wanted(&controller), controller.wanted()), (rate, rate));
        controller.associate(now, Some(Bssid([4; 6]))).unwrap();
        assert_eq!(wanted(&controller), rate);
    }

    #[test]
    fn bounds_that_follow_from_the_same_are_one_event() {
        let mut controller = controller();
        let now = Instant::from_nanos(1);
        controller.associate(now, Some(Bssid([2; 6]))).unwrap();
        for tick in 1..4 {
            let now = Instant::from_nanos(tick * 500_000_000);
            controller.controller_mut().unwrap().handle_tick(now, None, &[]);
            controller.log_events();
        }
        assert_eq!(controller.history().len(), 1, "{:?}", controller.history());
        assert!(controller.history()[0].ends_with("(set by hand)"), "{:?}", controller.history());
    }
}
