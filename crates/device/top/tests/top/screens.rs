//! What a real terminal shows, as vt100 emulates it.

use crate::support::{LARGE, SMALL, live, minute, terminal, text};
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use wakeai_top::{Action, Column, Filter, Page, Status, View};

#[test]
fn tables_of_1_40_and_1000_connections_on_both_terminals() {
    for count in [1, 40, 1000] {
        let readings = minute(count);
        for (name, size) in [("80x24", SMALL), ("200x60", LARGE)] {
            let parser = terminal(&View::default(), &[&readings], &live(), size);
            insta::assert_snapshot!(format!("table-{count}-{name}"), text(&parser));
        }
    }
}

#[test]
fn one_connection_on_both_terminals() {
    let readings = minute(40);
    let selected = Some(readings[0].connections[3].id);
    let view = View { page: Page::Detail, selected, ..View::default() };
    for (name, size) in [("80x24", SMALL), ("200x60", LARGE)] {
        let parser = terminal(&view, &[&readings], &live(), size);
        insta::assert_snapshot!(format!("detail-{name}"), text(&parser));
    }
}

#[test]
fn what_is_missing_and_a_message_are_on_the_screen() {
    let mut reading = crate::support::reading(5, 2);
    for connection in &mut reading.connections {
        (connection.events, connection.pid, connection.owner) = (None, None, "".into());
    }
    let reason = "the privilege CAP_BPF is missing; run as root";
    reading.missing = vec![format!("congestion events: {reason}")];
    let message = Some("The recording has ended: No space left on device".to_owned());
    let status = Status { message, ..live() };
    let parser = terminal(&View::default(), &[&[reading.into()]], &status, SMALL);
    insta::assert_snapshot!("missing-80x24", text(&parser));
}

#[test]
fn the_keys_are_listed_and_a_typed_filter_stands_below() {
    let readings = minute(9);
    let help = View { page: Page::Help, ..View::default() };
    insta::assert_snapshot!("help-80x24", text(&terminal(&help, &[&readings], &live(), SMALL)));
    let filter = Filter { text: "curl".to_owned(), ..Filter::default() };
    let typing = View { filter, typing: true, ..View::default() };
    let shown = text(&terminal(&typing, &[&readings], &live(), SMALL));
    assert!(shown.trim_end().ends_with("filter: curl"), "{shown}");
    assert!(shown.contains("curl/1000") && !shown.contains("iperf3/"), "{shown}");
}

#[test]
fn no_cell_has_a_colour_and_no_column_is_cut() {
    let readings = minute(40);
    for width in 40..=220 {
        let parser = terminal(&View::default(), &[&readings], &live(), (width, 24));
        for (row, column) in (0..24).flat_map(|row| (0..width).map(move |column| (row, column))) {
            let cell = parser.screen().cell(row, column).unwrap();
            assert_eq!((cell.fgcolor(), cell.bgcolor()), Default::default(), "{row}, {column}");
        }
        let shown = text(&parser);
        let head = shown.lines().find(|line| line.contains("PROCESS")).unwrap();
        let heads: Vec<_> = Column::ALL.iter().map(|column| column.head()).collect();
        let rest =
            heads.iter().fold(head.replace('▼', ""), |rest, head| rest.replacen(head, "", 1));
        assert_eq!(rest.trim(), "", "{width}: {head}");
    }
}

#[test]
fn a_frame_after_others_is_the_same_as_a_first_frame() {
    let readings = minute(40);
    let view = View::default();
    let frames: Vec<_> = (1..=readings.len()).map(|end| &readings[..end]).collect();
    let after_others = text(&terminal(&view, &frames, &live(), SMALL));
    assert_eq!(after_others, text(&terminal(&view, &[&readings], &live(), SMALL)));
}

#[test]
fn keys_sort_select_filter_hold_and_quit() {
    let readings = minute(9);
    let reading = readings.last().unwrap();
    let mut view = View::default();
    let mut press = |code| view.handle_key(KeyEvent::from(code), reading);
    assert_eq!(press(KeyCode::Char(' ')), Action::Hold);
    assert_eq!(press(KeyCode::Left), Action::Step(-1));
    assert_eq!(press(KeyCode::Char('q')), Action::Quit);
    for letter in ['s', 'r', '/'] {
        press(KeyCode::Char(letter));
    }
    for letter in "CURQ".chars() {
        assert_eq!(press(KeyCode::Char(letter)), Action::Draw, "it is typed");
    }
    let keys = [KeyCode::Backspace, KeyCode::Char('L'), KeyCode::Enter, KeyCode::Down];
    for code in keys {
        press(code);
    }
    press(KeyCode::Enter);
    assert_eq!((view.filter.text.as_str(), view.page), ("CURL", Page::Detail));
    let rows = view.arrange(reading);
    assert!(!rows.is_empty() && rows.iter().all(|row| &*row.owner == "curl"), "in any case");
    assert_eq!(view.selected, Some(rows[0].id));
    assert_eq!((view.sort, view.reversed), (Column::History, true));
}

#[test]
fn networks_ports_and_namespaces_choose_connections() {
    let mut reading = crate::support::reading(1, 600);
    reading.connections[7].namespace = "tablet1".into();
    let count = |filter: Filter| View { filter, ..View::default() }.arrange(&reading).len();
    let networks = vec!["203.0.1.0/24".parse().unwrap()];
    assert_eq!(count(Filter { networks, ..Filter::default() }), 250);
    assert_eq!(count(Filter { text: "203.0.1.0/24".to_owned(), ..Filter::default() }), 250);
    assert_eq!(count(Filter { ports: vec![443], ..Filter::default() }), 600);
    assert_eq!(count(Filter { ports: vec![40_003, 40_009], ..Filter::default() }), 2);
    let namespaces = vec!["tablet1".to_owned()];
    assert_eq!(count(Filter { namespaces, ..Filter::default() }), 1);
    let namespaces = vec!["4026531840".to_owned()];
    assert_eq!(count(Filter { namespaces, ..Filter::default() }), 600);
}

/// The answers of an agent with two peers.
fn agent() -> wakeai_api::Answers {
    let peer = |station: &str, sending: bool, mbps: f64| {
        serde_json::json!({
            "station": station, "sending": sending, "delivery_rate_mbps": mbps, "max_mbps": 38.4,
            "min_rtt_ms": 12.0, "growth_ms": 31.5, "reserved_mbps": null, "reserved_share": null,
            "admitted": false, "interval_ms": 2000.0, "age_ms": 700.0
        })
    };
    let answers = serde_json::json!({
        "socket": "/run/wakeai/1.sock",
        "status": {
            "state": "controlling", "pid": 812, "program": "0.1.0", "uptime_s": 77.0, "netns": 4_026_531_840_u64,
            "interface": "wlan0", "station": "0000000000000001", "bssid": "02:00:5e:10:00:01",
            "link_rate_mbps": 65.0, "presence_to": null, "law": "airtime", "default_algorithm": "wakeai_cubic",
            "senders": 2, "peers": 2, "delivery_rate_mbps": 14.25, "rtt_ms": 45.0, "min_rtt_ms": 12.0,
            "growth_ms": 33.0, "reservation": null, "connections": []
        },
        "peers": [peer("0000000000000002", true, 15.5), peer("0000000000000003", false, 0.0)],
        "bounds": {
            "law": "airtime", "floor": 12, "ceiling": 48, "pacing_mbps": null,
            "why": ["the share of 15 Mbit/s needs 48 segments"], "history": []
        },
        "targets": {
            "senders": 2, "total_mbps": 30.1, "max_mbps": 38.4, "share_mbps": 15.05,
            "delivery_rate_mbps": 14.25, "access_point_buffer": 300
        },
        "metrics": {}
    });
    serde_json::from_value(answers).unwrap()
}

#[test]
fn an_agent_has_a_line_and_its_peers_a_page() {
    let mut reading = crate::support::reading(5, 3);
    reading.agents = vec![agent()];
    for connection in &mut reading.connections {
        connection.namespace = "tablet1".into();
    }
    let window = [reading.into()];
    let shown = |page, size| {
        let view = View { page, ..View::default() };
        text(&terminal(&view, &[&window], &live(), size))
    };
    insta::assert_snapshot!("agent-line-80x24", shown(Page::Table, SMALL));
    insta::assert_snapshot!("agents-80x24", shown(Page::Agents, SMALL));
    let wide = shown(Page::Table, LARGE);
    assert!(wide.contains("\nwlan0 in tablet1: controlling"), "{wide}");
    assert!(wide.contains("share 15.05 Mbit/s, delivers 14.25 Mbit/s"), "{wide}");
}
