//! What flows may be where a station has a proxy.

use super::names::overlap;
use super::problems::Problems;
use crate::experiment::{Endpoint, FlowKind, FlowSpec, Selector, StationGroup};
use crate::tree::Origin;

/// A flow, and where it is written.
pub(super) struct Written {
    pub(super) flow: FlowSpec,
    pub(super) origin: Origin,
    pub(super) path: String,
}

/// Reports the flows that no proxy carries: it relays TCP to the server, and has one congestion
/// control and one target for all.
pub(super) fn check(flows: &[Written], groups: &[StationGroup], problems: &Problems) {
    let behind = |endpoint| match endpoint {
        Endpoint::Stations(selector) if groups[selector.group].proxy => Some(selector),
        _ => None,
    };
    for (index, Written { flow, origin, path }) in flows.iter().enumerate() {
        let refuse = |key: &str, found: &str, allowed: &str| {
            problems.add(*origin, format!("{path}.{key}"), found, allowed);
        };
        if behind(flow.to).is_some() {
            refuse("to", "a station with `proxy`", "a station without: it carries uploads alone");
        }
        let Some(sender) = behind(flow.from) else { continue };
        if flow.to != Endpoint::Server {
            refuse("to", "a flow to a station, from one with `proxy`", "\"server\"");
        }
        if flow.kind == FlowKind::Udp {
            refuse("kind", "\"udp\" from a station with `proxy`", "\"tcp\", which it relays");
        }
        if flows[..index].iter().any(|other| differs(&other.flow, flow, sender)) {
            let found = "another algorithm or rate than the station's flow before";
            refuse("algorithm", found, "the same for all flows of a station with `proxy`");
        }
    }
}

/// Whether both are of one station and ask different things of its proxy.
fn differs(other: &FlowSpec, flow: &FlowSpec, sender: Selector) -> bool {
    matches!(other.from, Endpoint::Stations(from) if overlap(from, sender))
        && (&other.algorithm, other.rate) != (&flow.algorithm, flow.rate)
}
