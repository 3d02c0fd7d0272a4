//! Finds what stands in the way of intercepted connections at the start: rules of policy routing, the
//! firewall's chains, and the kernel's check of source addresses. Connections that the transparent
//! proxy intercepts pass the chains INPUT and OUTPUT instead of FORWARD.

use std::process::{Command, Stdio};

use serde_json::Value;
use wakeai_host::rules_before;

use crate::config::{Config, Intercepted};
use crate::error::ProxyError;
use crate::transparent::{ROUTE_MARK, ROUTE_TABLE};

/// Warns of what may stand in the way in the calling thread's network namespace. The proxy's route
/// and rules exist already.
///
/// # Errors
///
/// [`ProxyError::Obstructed`] where every intercepted connection would hang.
pub(crate) fn check(config: &Config) -> Result<(), ProxyError> {
    let rules = rules_before(ROUTE_MARK, ROUTE_TABLE);
    for (rule, is_delivered) in rules.map_err(ProxyError::system("read the policy rules"))? {
        if !is_delivered {
            return Err(ProxyError::Obstructed(rule));
        }
        tracing::warn!(
            "this rule of `ip rule` comes before the proxy's: {rule}; connections whose packets it takes hang: \
             give it a priority above 0"
        );
    }
    let forwards = config.intercepts(Intercepted::Forwarded);
    warn_of_chains(forwards);
    if forwards {
        warn_of_source_checks(&config.in_interfaces);
    }
    Ok(())
}

/// Warns of every chain that may filter packets which the proxy intercepts, or would have filtered
/// them.
fn warn_of_chains(forwards: bool) {
    let ruleset = output("nft", &["-j", "list", "ruleset"])
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    if forwards {
        for chain in filters(&ruleset, "forward").into_iter().chain(legacy("FORWARD")) {
            tracing::warn!(
                "the chain {chain} filters what this machine forwards, and does not see what the proxy \
                 intercepts: allow no more than the chain does, with --in-interface, --allow-from and --allow-to"
            );
        }
    }
    for chain in filters(&ruleset, "input").into_iter().chain(legacy("INPUT")) {
        tracing::warn!(
            "the chain {chain} filters what comes to this machine, and intercepted connections pass it: where it \
             drops them, they hang; let it accept packets with the proxy's mark first: \
             `nft insert rule {chain} meta mark {ROUTE_MARK:#x} accept`, or for iptables \
             `iptables -I INPUT -m mark --mark {ROUTE_MARK:#x} -j ACCEPT`"
        );
    }
}

/// Warns of interfaces on which the kernel drops intercepted packets because of their source address
/// (`rp_filter`, RFC 3704).
fn warn_of_source_checks(interfaces: &[String]) {
    let read = |interface: &str, key: &str| {
        // A name may have dots in it, which separate the parts of a sysctl's name.
        let path = format!("/proc/sys/net/ipv4/conf/{interface}/{key}");
        std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u8>().ok())
    };
    let names = if interfaces.is_empty() { all_interfaces() } else { interfaces.to_vec() };
    for name in names {
        let of = |key| read(&name, key).unwrap_or(0).max(read("all", key).unwrap_or(0));
        // Measured with Linux 6.18: with `accept_local` the route's own answer counts, unless the check is strict.
        if of("src_valid_mark") > 0 && (of("accept_local") == 0 || of("rp_filter") == 1) {
            tracing::warn!(
                "net.ipv4.conf.{name}.src_valid_mark (or that of all) is 1: the kernel then checks the sources of \
                 intercepted packets by the proxy's own route, and drops them: set both to 0"
            );
        }
        if of("rp_filter") == 1 {
            tracing::warn!(
                "net.ipv4.conf.{name}.rp_filter (or that of all) is 1, strict: packets whose source is not routed \
                 over {name} are dropped before the proxy sees them: set it to 2, loose, where clients are behind \
                 another router"
            );
        }
    }
}

/// The interfaces of the namespace, but the loopback.
fn all_interfaces() -> Vec<String> {
    let listed = std::fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    let names = listed.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !["all", "default", "lo"].contains(&name.as_str())).collect()
}

/// The names of the nftables chains at this hook that may drop packets. Chains of iptables-nft are
/// nftables chains, too. A chain that accepts packets with the proxy's mark is not among them. It reads
/// the JSON of libnftables-json(5). Chains of the family bridge are left out: the frames of a
/// bridge are neither routed nor intercepted.
fn filters(ruleset: &Value, hook: &str) -> Vec<String> {
    let objects = ruleset["nftables"].as_array().into_iter().flatten();
    let place = |object: &Value, chain: &str| {
        [&object["family"], &object["table"], &object[chain]]
            .map(|name| name.as_str().unwrap_or_default().to_owned())
    };
    let has_rule = |chain: &[String; 3], is: fn(&Value) -> bool| {
        let mut rules = objects.clone().map(|object| &object["rule"]);
        rules.any(|rule| place(rule, "chain") == *chain && is(&rule["expr"]))
    };
    let mut found = Vec::new();
    for chain in objects.clone().map(|object| &object["chain"]) {
        let name = place(chain, "name");
        let routed = ["ip", "ip6", "inet"].contains(&name[0].as_str());
        let filters = chain["policy"] == "drop" || has_rule(&name, has_verdict);
        if chain["hook"] == hook && routed && filters && !has_rule(&name, accepts_mark) {
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

/// Whether the rule does nothing but accept packets with the proxy's mark.
fn accepts_mark(expression: &Value) -> bool {
    let Value::Array(parts) = expression else { return false };
    let is_mark = |part: &Value| {
        part["match"]["left"]["meta"]["key"] == "mark" && part["match"]["right"] == ROUTE_MARK
    };
    let is_neutral = |part: &Value| part.get("accept").is_some() || part.get("counter").is_some();
    parts.iter().any(is_mark)
        && parts.iter().any(|part| part.get("accept").is_some())
        && parts.iter().all(|part| is_mark(part) || is_neutral(part))
}

/// The chains of iptables-legacy with this name that may filter. If the kernel has the legacy table
/// `filter` but no program can list it, the chain of that table counts as one that may filter.
fn legacy(chain: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (file, program) in
        [("ip_tables_names", "iptables-legacy"), ("ip6_tables_names", "ip6tables-legacy")]
    {
        let tables = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"));
        let is_there = tables.is_ok_and(|tables| tables.lines().any(|table| table == "filter"));
        let rules = || output(program, &["-S", chain]);
        if is_there && rules().is_none_or(|rules| is_filter(&rules, chain)) {
            found.push(format!("filter {chain} of {program}"));
        }
    }
    found
}

/// Whether the output of `iptables -S` has any line other than an accepting policy.
fn is_filter(rules: &str, chain: &str) -> bool {
    rules.lines().any(|rule| rule.trim() != format!("-P {chain} ACCEPT"))
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
            filters(&serde_json::from_str(&text).unwrap(), "forward")
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
        assert!(!is_filter("-P FORWARD ACCEPT\n", "FORWARD"));
        assert!(is_filter("-P FORWARD DROP\n", "FORWARD"));
        assert!(is_filter("-P FORWARD ACCEPT\n-A FORWARD -i guest -j DROP\n", "FORWARD"));
    }
}
