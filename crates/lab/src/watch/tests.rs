use std::net::{Ipv4Addr, SocketAddr};

use wakeai_connection::{ErrorCode, Figures};
use wakeai_units::Bytes;

use super::*;
use wakeai_world::{SERVER_ADDRESS, station_address};

const SECOND: u64 = 1_000_000_000;

fn plan(index: usize, kind: Kind) -> FlowPlan {
    FlowPlan {
        index,
        group: index,
        sender: 1,
        receiver: 0,
        from: station_address(wakeai_medium::StationId(0)),
        to: SERVER_ADDRESS,
        port: 5_201 + index as u16,
        data_port: 20_001 + index as u16,
        start: Duration::ZERO,
        round_trip: Duration::ZERO,
        kind,
        algorithm: None,
        requested: None,
        target: None,
        limit: None,
        proxied: false,
    }
}

/// Two flows, a run from second 100 on with 5 s of warmup and 20 s in all.
fn reader() -> Reader {
    let plans = vec![plan(0, Kind::Tcp), plan(1, Kind::Own(vec![Bytes::new(1); 2]))];
    let mut reader = Reader::new(plans, None);
    let origin = Instant::from_nanos(100 * SECOND);
    let (warm, end) = (origin + Duration::from_secs(5), origin + Duration::from_secs(20));
    reader.span = Some(Span { origin, warm, end });
    reader
}

/// A socket of the station towards the server.
fn socket(cookie: u64, local_port: u16, remote_port: u16) -> Socket {
    let local = station_address(wakeai_medium::StationId(0));
    Socket {
        cookie,
        netns_cookie: 1,
        netns_inode: 1,
        local: SocketAddr::from((local, local_port)),
        remote: SocketAddr::from((SERVER_ADDRESS, remote_port)),
    }
}

fn sample(second: u64, socket: Socket) -> Record {
    let latest_rtt = Some(Duration::from_millis(40));
    let figures = Figures { latest_rtt, ..Figures::default() };
    Record::Sample(Sample { at: Instant::from_nanos(second * SECOND), socket, figures })
}

fn event(second: u64, socket: Socket, kind: EventKind) -> Record {
    let figures = Figures::default();
    Record::Event(Event { at: Instant::from_nanos(second * SECOND), socket, figures, kind })
}

#[test]
fn only_the_sending_ends_of_data_connections_are_counted() {
    let mut reader = reader();
    let data = socket(1, 5_201, 20_001);
    let control = socket(2, 5_201, 41_234);
    let receiver = Socket { local: data.remote, remote: data.local, ..socket(3, 0, 0) };
    let elsewhere = Socket {
        remote: SocketAddr::from((Ipv4Addr::new(10, 74, 0, 9), 20_001)),
        ..socket(4, 5_201, 0)
    };
    for socket in [data, control, receiver, elsewhere] {
        reader.record(&sample(110, socket));
    }
    assert_eq!(reader.watched.rtt[0].len(), 1);
    assert_eq!(reader.watched.rtt[1].len(), 0);
}

#[test]
fn the_connections_of_a_flow_of_our_own_are_numbered() {
    let mut reader = reader();
    assert_eq!(reader.flow_of(&socket(7, 40_000, 5_202)), Some((1, 0)));
    assert_eq!(reader.flow_of(&socket(8, 40_001, 5_202)), Some((1, 1)));
    assert_eq!(reader.flow_of(&socket(7, 40_000, 5_202)), Some((1, 0)), "known by its cookie");
}

#[test]
fn figures_are_of_the_window_and_retransmissions_of_the_whole_run() {
    let mut reader = reader();
    let data = socket(1, 5_201, 20_001);
    for second in [104, 105, 120, 121] {
        reader.record(&sample(second, data));
        reader.record(&event(second, data, EventKind::Error(ErrorCode::DuplicateAck)));
        reader.record(&event(second, data, EventKind::Retransmit));
        reader.record(&event(second, data, EventKind::Timeout));
    }
    let watched = &reader.watched;
    assert_eq!(watched.rtt[0].len(), 2, "seconds 5 to 20");
    assert_eq!(watched.errors.duplicate_ack, 2);
    assert_eq!(watched.flows[0], FlowCounts { retransmits: 4, timeouts: 4 });
    assert_eq!(watched.flows[1], FlowCounts::default());
}

#[test]
fn an_address_carried_by_an_ipv6_socket_is_the_same_address() {
    let mut reader = reader();
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
        v6 @ SocketAddr::V6(_) => v6,
    };
    let plain = socket(1, 5_201, 20_001);
    let carried = Socket { local: mapped(plain.local), remote: mapped(plain.remote), ..plain };
    assert_eq!(reader.flow_of(&carried), Some((0, 0)));
}
