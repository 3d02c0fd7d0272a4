//! The rows of a run's records as bytes, for the way from the guest. In a guest each instruction takes time of the
//! run, so the bytes are few and simple: numbers of seven bits a byte, the lowest first (LEB128).

use wakeai_connection::{CongestionState, ErrorCode, EventKind, Figures, Signal};
use wakeai_results::records::{EventRow, GoodputRow, Row, RowEvent, SampleRow};
use wakeai_units::{Bytes, Duration, Rate, Segments};

/// The first byte of each kind of row.
const SAMPLE: u8 = 1;
const EVENT: u8 = 2;
const GOODPUT: u8 = 3;

/// The bytes are no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotRows;

/// Adds a row. The lab has no rows of queues and of the air.
pub(crate) fn add(row: &Row, to: &mut Vec<u8>) {
    match row {
        Row::Sample(row) => {
            to.push(SAMPLE);
            numbers(to, [row.at_ns, row.flow.into(), row.connection.into()]);
            figures(to, &row.figures);
        }
        Row::Event(row) => {
            to.push(EVENT);
            numbers(to, [row.at_ns, row.flow.into(), row.connection.into()]);
            numbers(to, event(row.event).map(u64::from));
            number(to, row.cwnd.get().into());
        }
        Row::Goodput(row) => {
            to.push(GOODPUT);
            numbers(to, [row.at_ns, row.interval_ns, row.flow.into(), row.bytes]);
        }
        Row::Queue(_) | Row::Airtime(_) => {}
    }
}

/// Reads all rows of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Row>, NotRows> {
    let mut reader = Reader(bytes);
    let mut rows = Vec::new();
    while let Ok(kind) = reader.byte() {
        rows.push(match kind {
            SAMPLE => Row::Sample(SampleRow {
                at_ns: reader.number()?,
                flow: reader.small()?,
                connection: reader.small()?,
                figures: reader.figures()?,
            }),
            EVENT => Row::Event(EventRow {
                at_ns: reader.number()?,
                flow: reader.small()?,
                connection: reader.small()?,
                event: reader.event()?,
                cwnd: Segments::new(reader.small()?),
            }),
            GOODPUT => Row::Goodput(GoodputRow {
                at_ns: reader.number()?,
                interval_ns: reader.number()?,
                flow: reader.small()?,
                bytes: reader.number()?,
            }),
            _ => return Err(NotRows),
        });
    }
    Ok(rows)
}

fn numbers<const N: usize>(to: &mut Vec<u8>, values: [u64; N]) {
    for value in values {
        number(to, value);
    }
}

fn number(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A number that may be missing: 0, or else one more than it.
fn optional(to: &mut Vec<u8>, value: Option<u64>) {
    number(to, value.map_or(0, |value| value.saturating_add(1)));
}

fn figures(to: &mut Vec<u8>, of: &Figures) {
    numbers(to, [of.cwnd.get().into(), of.ssthresh.get().into()]);
    for time in [of.smoothed_rtt, of.latest_rtt, of.min_rtt, of.k] {
        optional(to, time.map(Duration::as_nanos));
    }
    to.push(of.congestion_state.number());
    for count in [of.packets_out, of.sacked_out, of.lost_out, of.retrans_out] {
        number(to, count.get().into());
    }
    numbers(to, [of.send_queue.get(), of.delivered]);
    for rate in [of.delivery_rate, of.pacing_rate] {
        optional(to, rate.map(Rate::bits_per_second));
    }
    numbers(to, [of.application_limited.into(), of.mss.get(), of.interface.into()]);
}

/// An event as three numbers: its kind, and what belongs to it.
fn event(of: RowEvent) -> [u32; 3] {
    let kind = match of {
        RowEvent::Reservation(value) => return [0, value, 0],
        RowEvent::Connection(kind) => kind,
    };
    match kind {
        EventKind::Opened => [1, 0, 0],
        EventKind::Closed => [2, 0, 0],
        EventKind::Retransmit => [3, 0, 0],
        EventKind::Timeout => [4, 0, 0],
        EventKind::Error(code) => [5, code.number().into(), 0],
        EventKind::StateChange { from, to, signal } => {
            let signal = match signal {
                None => 0,
                Some(Signal::Ecn) => 1,
                Some(Signal::TailLossProbe) => 2,
            };
            [6, u32::from(from.number()) << 8 | u32::from(to.number()), signal]
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, NotRows> {
        let (first, rest) = self.0.split_first().ok_or(NotRows)?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, NotRows> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(NotRows)
    }

    fn small(&mut self) -> Result<u32, NotRows> {
        u32::try_from(self.number()?).map_err(|_| NotRows)
    }

    fn optional(&mut self) -> Result<Option<u64>, NotRows> {
        Ok(self.number()?.checked_sub(1))
    }

    fn time(&mut self) -> Result<Option<Duration>, NotRows> {
        Ok(self.optional()?.map(Duration::from_nanos))
    }

    fn segments(&mut self) -> Result<Segments, NotRows> {
        self.small().map(Segments::new)
    }

    fn figures(&mut self) -> Result<Figures, NotRows> {
        // The fields are read in the order in which `figures` writes them.
        Ok(Figures {
            cwnd: self.segments()?,
            ssthresh: self.segments()?,
            smoothed_rtt: self.time()?,
            latest_rtt: self.time()?,
            min_rtt: self.time()?,
            k: self.time()?,
            congestion_state: CongestionState::from_number(self.byte()?),
            packets_out: self.segments()?,
            sacked_out: self.segments()?,
            lost_out: self.segments()?,
            retrans_out: self.segments()?,
            send_queue: Bytes::new(self.number()?),
            delivered: self.number()?,
            delivery_rate: self.optional()?.map(Rate::from_bps),
            pacing_rate: self.optional()?.map(Rate::from_bps),
            application_limited: self.number()? != 0,
            mss: Bytes::new(self.number()?),
            interface: self.small()?,
        })
    }

    fn event(&mut self) -> Result<RowEvent, NotRows> {
        let [kind, value, more] = [self.small()?, self.small()?, self.small()?];
        let state = |number: u32| CongestionState::from_number((number & 0xff) as u8);
        Ok(RowEvent::Connection(match kind {
            0 => return Ok(RowEvent::Reservation(value)),
            1 => EventKind::Opened,
            2 => EventKind::Closed,
            3 => EventKind::Retransmit,
            4 => EventKind::Timeout,
            5 => EventKind::Error(error_code(value)?),
            6 => EventKind::StateChange {
                from: state(value >> 8),
                to: state(value),
                signal: match more {
                    0 => None,
                    1 => Some(Signal::Ecn),
                    2 => Some(Signal::TailLossProbe),
                    _ => return Err(NotRows),
                },
            },
            _ => return Err(NotRows),
        }))
    }
}

fn error_code(number: u32) -> Result<ErrorCode, NotRows> {
    use ErrorCode::{DuplicateAck, LocalOverflow, Reordering, Timeout};
    let all = [Reordering, LocalOverflow, DuplicateAck, Timeout];
    all.into_iter().find(|code| u32::from(code.number()) == number).ok_or(NotRows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;
    use CongestionState::{Cwr, Disorder, Loss, Open};

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in rows() {
            add(&row, &mut bytes);
        }
        bytes
    }

    fn rows() -> Vec<Row> {
        let figures = Figures {
            cwnd: Segments::new(10),
            ssthresh: Segments::new(u32::MAX),
            smoothed_rtt: Some(Duration::from_micros(26_123)),
            latest_rtt: Some(Duration::ZERO),
            min_rtt: None,
            k: Some(Duration::from_secs(3)),
            congestion_state: CongestionState::Recovery,
            packets_out: Segments::new(1),
            sacked_out: Segments::new(2),
            lost_out: Segments::new(3),
            retrans_out: Segments::new(4),
            send_queue: Bytes::new(1 << 40),
            delivered: 1 << 33,
            delivery_rate: Some(Rate::from_bps(50_000_001)),
            pacing_rate: None,
            application_limited: true,
            mss: Bytes::new(1448),
            interface: 7,
        };
        let (at_ns, flow, connection) = (u64::MAX, 3, 1);
        let state = |from, to, signal| EventKind::StateChange { from, to, signal };
        let kinds = [
            EventKind::Opened,
            EventKind::Closed,
            EventKind::Retransmit,
            EventKind::Timeout,
            EventKind::Error(ErrorCode::Reordering),
            EventKind::Error(ErrorCode::Timeout),
            state(Open, Disorder, None),
            state(Disorder, Cwr, Some(Signal::Ecn)),
            state(Cwr, Loss, Some(Signal::TailLossProbe)),
        ];
        let events = kinds.map(RowEvent::Connection).into_iter().chain([RowEvent::Reservation(3)]);
        let cwnd = Segments::new(1 << 20);
        let events =
            events.map(|event| Row::Event(EventRow { at_ns, flow, connection, event, cwnd }));
        let goodput = GoodputRow { at_ns: 0, interval_ns: 1_000, flow: u32::MAX, bytes: 127 };
        events
            .chain([
                Row::Sample(SampleRow { at_ns: 128, flow: 0, connection: 0, figures }),
                Row::Goodput(goodput),
            ])
            .collect()
    }

    #[test]
    fn every_row_arrives_as_it_was() {
        let bytes = bytes();
        assert_eq!(format!("{:?}", read(&bytes).unwrap()), format!("{:?}", rows()));
    }

    #[test]
    fn bytes_that_are_no_rows_are_refused_and_never_read_past_their_end() {
        let bytes = bytes();
        let refused = (0..bytes.len()).filter(|length| read(&bytes[..*length]).is_err()).count();
        assert_eq!(refused, bytes.len() - rows().len());
        assert!(read(&[9]).is_err() && read(&[SAMPLE; 4]).is_err());
        assert!(read(&[&[GOODPUT] as &[u8], &[0xff; 40]].concat()).is_err());
    }
}
