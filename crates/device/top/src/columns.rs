//! The columns of the table of connections: their texts, widths and orders, and which of them a screen has room for.

use std::cmp::{Ordering, Reverse};

use strum::{EnumMessage, IntoStaticStr, VariantArray};
use wakeai_units::{Duration, Rate};

use crate::reading::{Events, SeenConnection};

/// A column of the table, in the order of the screen. Its name is what `--sort` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Column {
    /// The process and its pid, or the station.
    Process,
    /// The network namespace.
    Namespace,
    /// This end.
    Local,
    /// The other end.
    Peer,
    /// The congestion control algorithm.
    Algorithm,
    /// The rate of acknowledged bytes.
    #[default]
    Sent,
    /// The rate of the last readings, as a sparkline.
    #[strum(serialize = "recent-rate")]
    History,
    /// The rate of received bytes.
    Received,
    /// The congestion window.
    #[strum(serialize = "cwnd")]
    Window,
    /// The floor and the ceiling of the window that the agent has set.
    Bounds,
    /// The smoothed RTT.
    Rtt,
    /// The minimum RTT.
    MinRtt,
    /// The queueing delay.
    Queueing,
    /// Bytes that wait or are in flight.
    Backlog,
    /// The maximum segment size.
    Mss,
    /// What limits the sender.
    Limit,
    /// The congestion state.
    State,
    /// The counts of the four congestion events.
    Events,
    /// The congestion events of the last readings, as a sparkline.
    #[strum(serialize = "recent-events")]
    EventHistory,
    /// Retransmitted segments.
    Retransmits,
}

/// The readings in a sparkline.
pub(crate) const SPARKS: usize = 15;
/// The longest name of a process or station.
const LONGEST_NAME: usize = 24;

impl Column {
    /// All columns, in the order of the screen.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// The column's head, whether its texts are aligned at the right, and its rank: where room is short, the columns of the
    /// last ranks are left out.
    const fn traits(self) -> (&'static str, bool, u8) {
        match self {
            Self::Process => ("PROCESS", false, 1),
            Self::Namespace => ("NAMESPACE", false, 19),
            Self::Local => ("LOCAL", false, 20),
            Self::Peer => ("PEER", false, 2),
            Self::Algorithm => ("ALGORITHM", false, 13),
            Self::Sent => ("SENT Mb/s", true, 3),
            Self::History => ("RECENT RATE", false, 15),
            Self::Received => ("RECV Mb/s", true, 11),
            Self::Window => ("CWND", true, 4),
            Self::Bounds => ("BOUNDS", true, 7),
            Self::Rtt => ("RTT ms", true, 5),
            Self::MinRtt => ("MIN ms", true, 9),
            Self::Queueing => ("QUEUE ms", true, 12),
            Self::Backlog => ("BACKLOG kB", true, 14),
            Self::Mss => ("MSS", true, 17),
            Self::Limit => ("LIMITED BY", false, 6),
            Self::State => ("STATE", false, 10),
            Self::Events => ("EV 1/2/3/4", true, 8),
            Self::EventHistory => ("RECENT EVENTS", false, 18),
            Self::Retransmits => ("RETRANS", true, 16),
        }
    }

    /// The column's head.
    pub const fn head(self) -> &'static str {
        self.traits().0
    }

    /// Whether the column's texts are aligned at the right.
    pub const fn is_number(self) -> bool {
        self.traits().1
    }

    /// The next column on the screen. After the last column comes the first.
    #[must_use]
    pub fn next(self) -> Self {
        self.after(1)
    }

    /// The previous column on the screen. Before the first column comes the last.
    #[must_use]
    pub fn previous(self) -> Self {
        self.after(Self::ALL.len() - 1)
    }

    fn after(self, steps: usize) -> Self {
        Self::ALL[(self as usize + steps) % Self::ALL.len()]
    }

    /// The text of a connection in this column. `past` has the connection's states at the previous readings, the oldest
    /// first, and ends with the present state.
    pub fn cell(self, connection: &SeenConnection, past: &[Option<&SeenConnection>]) -> String {
        let figures = &connection.figures;
        match self {
            Self::Process => process(connection),
            Self::Namespace => connection.namespace.to_string(),
            Self::Local => connection.local.to_string(),
            Self::Peer => connection.remote.to_string(),
            Self::Algorithm => connection.algorithm.to_string(),
            Self::Window => figures.cwnd.get().to_string(),
            Self::Bounds => bounds(connection),
            Self::Rtt => ms(figures.smoothed_rtt),
            Self::MinRtt => ms(figures.min_rtt),
            Self::Queueing => ms(connection.queueing()),
            Self::Backlog => format!("{:.0}", figures.send_queue.get() as f64 / 1e3),
            Self::Sent => mbps(connection.sent),
            Self::Received => mbps(connection.received),
            Self::Mss => figures.mss.get().to_string(),
            Self::Limit => connection.limit.map_or("-", Into::into).to_owned(),
            Self::State => figures.congestion_state.name().to_owned(),
            Self::Events => connection.events.map_or("-".to_owned(), events),
            Self::EventHistory => sparks(&recent_events(past)),
            Self::Retransmits => connection.retransmits.to_string(),
            Self::History => sparks(&recent_rates(past)),
        }
    }

    /// The usual order of two connections: texts ascend, and numbers descend.
    pub fn compare(self, a: &SeenConnection, b: &SeenConnection) -> Ordering {
        let down = |of: fn(&SeenConnection) -> u64| Reverse(of(a)).cmp(&Reverse(of(b)));
        match self {
            Self::Process => (&a.owner, a.pid).cmp(&(&b.owner, b.pid)),
            Self::Namespace => a.namespace.cmp(&b.namespace),
            Self::Local => a.local.cmp(&b.local),
            Self::Peer => a.remote.cmp(&b.remote),
            Self::Algorithm => a.algorithm.cmp(&b.algorithm),
            Self::Window => down(|one| one.figures.cwnd.get().into()),
            Self::Bounds => down(|one| one.bounds.to_numbers().1.into()),
            Self::Rtt => down(|one| nanos(one.figures.smoothed_rtt)),
            Self::MinRtt => down(|one| nanos(one.figures.min_rtt)),
            Self::Queueing => down(|one| nanos(one.queueing())),
            Self::Backlog => down(|one| one.figures.send_queue.get()),
            Self::Sent | Self::History => down(|one| bits(one.sent)),
            Self::Received => down(|one| bits(one.received)),
            Self::Mss => down(|one| one.figures.mss.get()),
            Self::Limit => b.limit.cmp(&a.limit),
            Self::State => b.figures.congestion_state.cmp(&a.figures.congestion_state),
            Self::Events | Self::EventHistory => down(|one| one.events.unwrap_or_default().total()),
            Self::Retransmits => down(|one| one.retransmits),
        }
    }

    /// The column's width for these rows. Numbers have a fixed width, so that the columns do not move from reading to
    /// reading.
    fn width(self, rows: &[&SeenConnection]) -> usize {
        let content = match self {
            Self::Process
            | Self::Namespace
            | Self::Local
            | Self::Peer
            | Self::Algorithm
            | Self::Bounds
            | Self::Events => {
                rows.iter().map(|row| self.cell(row, &[]).chars().count()).max().unwrap_or(0)
            }
            Self::Limit => 11,
            Self::State => 8,
            Self::EventHistory | Self::History => SPARKS,
            _ => 7,
        };
        // One character is for the mark behind the head of the sorted column.
        content.max(self.head().len() + 1)
    }

    /// Whether the column says something about these rows.
    fn is_useful(self, rows: &[&SeenConnection]) -> bool {
        match self {
            Self::Namespace => rows.iter().any(|row| row.namespace != rows[0].namespace),
            Self::Bounds => rows.iter().any(|row| !matches!(row.bounds.to_numbers(), (0, 0, ..))),
            Self::Events | Self::EventHistory => rows.iter().any(|row| row.events.is_some()),
            Self::Received => rows.iter().any(|row| row.received.is_some()),
            _ => true,
        }
    }
}

/// The columns that `width` characters have room for, in the order of the screen, each with its width. A column is
/// shown whole or not at all. The two most important columns are always shown.
pub(crate) fn choose(rows: &[&SeenConnection], width: usize) -> Vec<(Column, usize)> {
    let mut room = width;
    let mut chosen = Vec::new();
    let mut by_rank = Column::ALL.to_vec();
    by_rank.sort_by_key(|column| column.traits().2);
    for column in by_rank {
        if !column.is_useful(rows) {
            continue;
        }
        let taken = column.width(rows);
        if chosen.len() >= 2 && taken + 1 > room {
            break;
        }
        room = room.saturating_sub(taken + 1);
        chosen.push((column, taken));
    }
    chosen.sort_by_key(|(column, _)| *column as usize);
    chosen
}

fn process(connection: &SeenConnection) -> String {
    let name: String = connection.owner.chars().take(LONGEST_NAME).collect();
    match connection.pid {
        Some(pid) => format!("{name}/{pid}"),
        None if name.is_empty() => "-".to_owned(),
        None => name,
    }
}

fn bounds(connection: &SeenConnection) -> String {
    match connection.bounds.to_numbers() {
        (0, 0, ..) => "-".to_owned(),
        (floor, 0, ..) => format!("{floor}.."),
        (floor, ceiling, ..) => format!("{floor}..{ceiling}"),
    }
}

fn events(events: Events) -> String {
    let [reordering, overflow, duplicate, timeout] = events.counts;
    format!("{reordering}/{overflow}/{duplicate}/{timeout}")
}

fn ms(span: Option<Duration>) -> String {
    span.map_or("-".to_owned(), |span| format!("{:.1}", span.as_millis_f64()))
}

fn mbps(rate: Option<Rate>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{:.2}", rate.as_mbps_f64()))
}

fn nanos(span: Option<Duration>) -> u64 {
    span.map_or(0, Duration::as_nanos)
}

fn bits(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::bits_per_second)
}

fn recent_rates(past: &[Option<&SeenConnection>]) -> Vec<Option<u64>> {
    past.iter().map(|one| one.and_then(|one| one.sent).map(Rate::bits_per_second)).collect()
}

/// The number of events between each reading and the next.
fn recent_events(past: &[Option<&SeenConnection>]) -> Vec<Option<u64>> {
    let totals: Vec<_> =
        past.iter().map(|one| one.and_then(|one| one.events).map(Events::total)).collect();
    let between = |pair: &[Option<u64>]| Some(pair[1]?.saturating_sub(pair[0]?));
    totals.windows(2).map(between).collect()
}

/// The last values as bars. The largest value has the highest bar, and an unknown value is a space.
fn sparks(values: &[Option<u64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(SPARKS)..];
    let largest = shown.iter().flatten().max().copied().unwrap_or(0).max(1);
    let bar = |value: &Option<u64>| {
        let height = |value: u64| (u128::from(value) * 7).div_ceil(u128::from(largest)) as usize;
        value.map_or(' ', |value| BARS[height(value)])
    };
    let bars: String = shown.iter().map(bar).collect();
    format!("{bars:>SPARKS$}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_column_has_a_name_a_place_and_an_importance() {
        for &column in Column::ALL {
            assert_eq!(column.next().previous(), column);
        }
        let names: BTreeSet<_> = Column::ALL.iter().map(<&str>::from).collect();
        assert_eq!(names.len(), Column::ALL.len(), "no two columns have one name");
        let ranks: BTreeSet<_> = Column::ALL.iter().map(|column| column.traits().2).collect();
        assert_eq!(ranks.len(), Column::ALL.len(), "no two columns have one rank");
    }

    #[test]
    fn the_largest_value_has_the_highest_bar_and_zero_the_lowest() {
        let bars = sparks(&[None, Some(0), Some(1), Some(70), Some(35)]);
        assert_eq!(bars.trim_start(), "▁▂█▅");
        assert_eq!(bars.chars().count(), SPARKS);
        assert_eq!(sparks(&[Some(0); 20]), "▁".repeat(SPARKS));
    }
}
