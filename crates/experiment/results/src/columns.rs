//! The columns of a result's tables, which Parquet files and the Python package have. The name of a column is that
//! of the key in the JSON, with `_` where an object is inside another.

use std::borrow::Borrow;

use wakeai_tables::{Column, columns};

use crate::result::{FlowResult, GroupResult, Run, StationResult};

/// The columns of every run.
pub fn runs<R: Borrow<Run>>() -> Vec<Column<R>> {
    columns! { Run as run:
        "simulated_s" F64(Some(run.simulated_s)),
        "total_goodput_mbps" F64(Some(run.total_goodput_mbps)),
        "jain" F64(run.jain),
        "capacity_normalised" F64(run.capacity_normalised),
        "mean_utilisation" F64(run.mean_utilisation),
        "rtt_ms_p50" F64(run.rtt_ms.p50),
        "rtt_ms_p95" F64(run.rtt_ms.p95),
        "rtt_ms_p99" F64(run.rtt_ms.p99),
        "errors_reordering" MaybeU64(run.errors.map(|all| all.reordering)),
        "errors_local_overflow" MaybeU64(run.errors.map(|all| all.local_overflow)),
        "errors_duplicate_ack" MaybeU64(run.errors.map(|all| all.duplicate_ack)),
        "errors_timeout" MaybeU64(run.errors.map(|all| all.timeout)),
    }
}

/// The columns of [`FrameCounts`](crate::result::FrameCounts).
pub fn frames<R: Borrow<Run>>() -> Vec<Column<R>> {
    columns! { Run as run:
        "frames_mpdus" MaybeU64(run.frames.map(|sent| sent.mpdus)),
        "frames_ppdus" MaybeU64(run.frames.map(|sent| sent.ppdus)),
    }
}

/// The columns of the simulator's [`Drops`](crate::result::Drops).
pub fn drops<R: Borrow<Run>>() -> Vec<Column<R>> {
    columns! { Run as run:
        "drops_access_point" MaybeU64(run.drops.map(|drops| drops.access_point)),
        "drops_air" MaybeU64(run.drops.map(|drops| drops.air)),
        "drops_hosts" MaybeU64(run.drops.map(|drops| drops.hosts)),
        "drops_wired_down" MaybeU64(run.drops.map(|drops| drops.wired_down)),
        "drops_wired_up" MaybeU64(run.drops.map(|drops| drops.wired_up)),
    }
}

/// The columns of the lab's [`Lateness`](crate::result::Lateness).
pub fn lateness<R: Borrow<Run>>() -> Vec<Column<R>> {
    columns! { Run as run:
        "lateness_faithful" Boolean(run.lateness.map(|late| late.faithful)),
        "lateness_max_ms" F64(run.lateness.map(|late| late.max_ms)),
        "lateness_p50_ms" F64(run.lateness.map(|late| late.p50_ms)),
        "lateness_p99_ms" F64(run.lateness.map(|late| late.p99_ms)),
        "lateness_releases" MaybeU64(run.lateness.map(|late| late.releases)),
        "lateness_waits_p99_ms" F64(run.lateness.map(|late| late.waits_p99_ms)),
    }
}

/// The column of the real time that a run took. It differs from one simulation of the same run to the next.
pub fn wall<R: Borrow<Run>>() -> Vec<Column<R>> {
    columns! { Run as run: "wall_s" F64(Some(run.wall_s)), }
}

/// The columns of a station in one direction.
pub fn stations<R: Borrow<StationResult>>() -> Vec<Column<R>> {
    columns! { StationResult as station:
        "station" Text(Some(&station.station)),
        "direction" Text(Some(&station.direction)),
        "goodput_mbps" F64(Some(station.goodput_mbps)),
        "max_mbps" F64(station.max_mbps),
        "max_from" Text(station.max_from.map(Into::into)),
    }
}

/// The columns of a group of stations.
pub fn groups<R: Borrow<GroupResult>>() -> Vec<Column<R>> {
    columns! { GroupResult as group:
        "group" Text(Some(&group.group)),
        "goodput_mbps" F64(Some(group.goodput_mbps)),
        "jain" F64(group.jain),
        "rtt_ms_p50" F64(group.rtt_ms.p50),
        "rtt_ms_p95" F64(group.rtt_ms.p95),
        "rtt_ms_p99" F64(group.rtt_ms.p99),
    }
}

/// The columns of a flow.
pub fn flows<R: Borrow<FlowResult>>() -> Vec<Column<R>> {
    columns! { FlowResult as flow:
        "station" Text(Some(&flow.station)),
        "direction" Text(Some(&flow.direction)),
        "kind" Text(Some(&flow.kind)),
        "algorithm" Text(flow.algorithm.as_deref()),
        "bytes" U64(flow.bytes),
        "goodput_mbps" F64(Some(flow.goodput_mbps)),
        "completion_s" F64(flow.completion_s),
        "retransmits" MaybeU64(flow.retransmits),
        "timeouts" MaybeU64(flow.timeouts),
        "avr" F64(flow.avr),
    }
}

/// The columns of a [`SimulatedFlow`](crate::result::SimulatedFlow).
pub fn simulated<R: Borrow<FlowResult>>() -> Vec<Column<R>> {
    columns! { FlowResult as flow:
        "syn_timeouts" MaybeU64(flow.simulated.map(|flow| flow.syn_timeouts)),
        "syn_wait_s" F64(flow.simulated.map(|flow| flow.syn_wait_s)),
        "longest_stall_s" F64(flow.simulated.map(|flow| flow.longest_stall_s)),
    }
}

/// The columns of a [`FlowReservation`](crate::result::FlowReservation).
pub fn reservation<R: Borrow<FlowResult>>() -> Vec<Column<R>> {
    columns! { FlowResult as flow:
        "reservation_admitted_s" F64(flow.reservation.map(|asked| asked.admitted_s)),
        "reservation_limit" F64(flow.reservation.and_then(|asked| asked.limit)),
        "reservation_share" F64(flow.reservation.and_then(|asked| asked.share)),
        "reservation_standing" Text(flow.reservation.map(|asked| asked.outcome.into())),
        "reservation_taken" F64(flow.reservation.and_then(|asked| asked.taken)),
    }
}
