//! Finds the firewall's chains that filter what this machine forwards. They have no effect on
//! connections that the transparent proxy intercepts, because these pass INPUT and OUTPUT instead
//! of FORWARD.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Warns of every chain of the calling thread's network namespace that may filter forwarded
/// packets.
pub(crate) fn warn_of_filters() {
    for chain in nftables().into_iter().chain(legacy()) {
        tracing::warn!(
            "the chain {chain} filters what this machine forwards, and does not see what the proxy intercepts: \
             allow no more than the chain does, with --in-interface, --allow-from and --allow-to"
        );
    }
}

/// The names of the nftables chains that may filter forwarded packets. Chains of iptables-nft are
/// nftables chains, too. The list is empty if nft fails; the proxy then cannot make its own rules
/// either.
fn nftables() -> Vec<String> {
    output("nft", &["-j", "list", "ruleset"])
        .and_then(|text| serde_json::from_str(&text).ok())
        .map_or_else(Vec::new, |ruleset| filters(&ruleset))
}

/// Reads the JSON of libnftables-json(5). Chains of the family bridge are left out: the frames of a
/// bridge are neither routed nor intercepted.
fn filters(ruleset: &Value) -> Vec<String> {
    let objects = ruleset["nftables"].as_array().into_iter().flatten();
    let place = |object: &Value, chain: &str| {
        [&object["family"], &object["table"], &object[chain]]
            .map(|name| name.as_str().unwrap_or_default().to_owned())
    };
    let decides = |chain: &[String; 3]| {
        let mut rules = objects.clone().map(|object| &object["rule"]);
        rules.any(|rule| place(rule, "chain") == *chain && has_verdict(&rule["expr"]))
    };
    let mut found = Vec::new();
    for chain in objects.clone().map(|object| &object["chain"]) {
        let name = place(chain, "name");
        let routed = ["ip", "ip6", "inet"].contains(&name[0].as_str());
        if chain["hook"] == "forward" && routed && (chain["policy"] == "drop" || decides(&name)) {
            found.push(name.join(" "));
        }
    }
    found
}

/// Whether the expression may drop a packet: it does so itself, it passes the packet to another
/// chain, or it is a match or target of iptables that nftables does not know (`xt`).
fn has_verdict(expression: &Value) -> bool {
    const VERDICTS: [&str; 7] = ["drop", "reject", "jump", "goto", "queue", "vmap", "xt"];
    match expression {
        Value::Array(all) => all.iter().any(has_verdict),
        Value::Object(all) => all
            .iter()
            .any(|(name, inside)| VERDICTS.contains(&name.as_str()) || has_verdict(inside)),
        _ => false,
    }
}

/// The FORWARD chains of iptables-legacy that may filter. If the kernel has the legacy
/// table `filter` but no program can list it, the FORWARD chain of that table counts as one that may
/// filter.
fn legacy() -> Vec<String> {
    let mut found = Vec::new();
    for (file, program) in
        [("ip_tables_names", "iptables-legacy"), ("ip6_tables_names", "ip6tables-legacy")]
    {
        let tables = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"));
        let is_there = tables.is_ok_and(|tables| tables.lines().any(|table| table == "filter"));
        if is_there && output(program, &["-S", "FORWARD"]).is_none_or(|rules| is_filter(&rules)) {
            found.push(format!("filter FORWARD of {program}"));
        }
    }
    found
}

/// Whether the output of `iptables -S` has any line other than an accepting policy.
fn is_filter(rules: &str) -> bool {
    rules.lines().any(|rule| rule.trim() != "-P FORWARD ACCEPT")
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_chain_filters_where_its_policy_or_a_rule_drops() {
        let ruleset = |policy: &str, family: &str, hook: &str, expression: &str| {
            let text = format!(
                r#"{{"nftables": [
                    {{"metainfo": {{}}}},
                    {{"chain": {{"family": "{family}", "table": "t", "name": "c", "hook": "{hook}",
                                 "policy": "{policy}"}}}},
                    {{"rule": {{"family": "{family}", "table": "t", "chain": "c",
                                "expr": [{expression}]}}}}]}}"#
            );
            filters(&serde_json::from_str(&text).unwrap())
        };
        let counts = r#"{"counter": {"packets": 0}}"#;
        assert!(ruleset("accept", "inet", "forward", counts).is_empty());
        assert_eq!(ruleset("drop", "inet", "forward", counts), ["inet t c"]);
        assert!(ruleset("drop", "inet", "input", counts).is_empty());
        assert!(ruleset("drop", "bridge", "forward", counts).is_empty());
        for verdict in [
            r#"{"drop": null}"#,
            r#"{"reject": {}}"#,
            r#"{"jump": {"target": "x"}}"#,
            r#"{"vmap": {"key": 1, "data": {"set": [[1, {"drop": null}]]}}}"#,
            r#"{"xt": {"type": "target"}}"#,
        ] {
            assert_eq!(ruleset("accept", "ip", "forward", verdict), ["ip t c"], "{verdict}");
        }
    }

    #[test]
    fn of_legacy_iptables_a_policy_that_accepts_alone_filters_nothing() {
        assert!(!is_filter("-P FORWARD ACCEPT\n"));
        assert!(is_filter("-P FORWARD DROP\n"));
        assert!(is_filter("-P FORWARD ACCEPT\n-A FORWARD -i guest -j DROP\n"));
    }
}
