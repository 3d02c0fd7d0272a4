//! Advice for an agent that finds no peers.

use std::fmt::Write as _;

use wakeai_api::Status;

/// Missing peers are reported after this number of sent messages.
const SENT: u64 = 3;

/// The counters of rejected messages, with their meanings.
const REFUSED: [(&str, &str); 9] = [
    ("forged", "of another group key"),
    ("wrong_bssid", "of another access point, or with another `bssid` stated"),
    ("wrong_version", "of another version of the format"),
    ("duplicate_id", "with this station's own number: `station` is configured twice"),
    ("stale", "sent at another time: the clocks differ by more than presence.clock_tolerance"),
    ("replayed", "that were replayed"),
    ("malformed", "that are no presence messages"),
    ("invalid", "with a field out of range"),
    ("table_full", "of more stations than the table has room for"),
];

const TO_TRY: &str = "    \
try: does an agent run on the other stations, with the same group key, `bssid` and presence.port?
    does the access point separate its clients (client isolation)? does a firewall drop UDP port PORT?
    does presence.broadcast = 255.255.255.255, or the last address of the network, work?
";

/// The advice. It is empty while there are peers, or while too few messages were sent in this association.
pub(super) fn words(status: &Status) -> String {
    let count = |name: &str| status.presence.get(name).copied().unwrap_or(0);
    let sent = count("sent");
    if status.peers > 0 || sent < SENT || count("accepted") + count("unproven") > 0 {
        return String::new();
    }
    let to = status.presence_to.as_deref().unwrap_or("no address, as the interface is down");
    let mut text = format!("  {sent} messages sent to {to}, ");
    let refused: Vec<_> = REFUSED.iter().filter(|(name, _)| count(name) > 0).collect();
    if refused.is_empty() {
        let received = if count("own") > 0 {
            "none received except this station's own"
        } else {
            "none received"
        };
        let port = to.rsplit_once(':').map_or("of presence", |(_, port)| port);
        let _ = write!(text, "{received}\n{}", TO_TRY.replace("PORT", port));
        return text;
    }
    text.push_str("all received were rejected:\n");
    for (name, meaning) in refused {
        let _ = writeln!(text, "    {} {meaning}", count(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(peers: usize, counts: &[(&str, u64)]) -> String {
        let status = serde_json::json!({
            "state": "controlling", "pid": 1, "program": "", "uptime_s": 1.0, "netns": 1,
            "interface": "wlan0", "station": "1", "law": "none", "senders": 1, "peers": peers,
            "delivery_rate_mbps": 0.0, "presence_to": "10.1.0.255:5", "connections": [],
            "presence": counts.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        });
        words(&serde_json::from_value(status).unwrap())
    }

    #[test]
    fn after_three_messages_without_an_answer_there_is_advice() {
        assert_eq!(said(0, &[("sent", 2), ("own", 2)]), "");
        assert_eq!(said(1, &[("sent", 9), ("accepted", 4)]), "");
        let text = said(0, &[("sent", 3), ("own", 3)]);
        assert!(
            text.starts_with(
                "  3 messages sent to 10.1.0.255:5, none received except this station's own\n"
            ),
            "{text}"
        );
        assert!(text.contains("drop UDP port 5?"), "{text}");
        assert!(said(0, &[("sent", 3)]).contains("none received\n"));
    }

    #[test]
    fn rejected_messages_are_counted_by_their_reasons() {
        let text = said(0, &[("sent", 3), ("own", 3), ("forged", 7)]);
        assert_eq!(
            text,
            "  3 messages sent to 10.1.0.255:5, all received were rejected:\n    7 of another group key\n"
        );
    }
}
