//! Flows with a target: what they got, how often they reached it, and what was reserved for them.

use comfy_table::{CellAlignment, Table};

use super::{spread, style};
use crate::figures::mean;
use crate::result::{FlowReservation, FlowResult, Run};

const HEADER: [&str; 6] =
    ["\ncondition", "\nstation", "goodput\nMbit/s", "\nAVR", "others'\nJain", "\nreserved"];

/// Rows for more flows are a plot's matter, not a terminal's.
const MOST: usize = 20;

/// A row per condition and flow with a target; `None` where there is none, or too many.
pub(super) fn targets(conditions: &[Vec<&Run>]) -> Option<Table> {
    let mut table = Table::new();
    table.load_style(style());
    table.set_header(HEADER);
    let mut any = false;
    for runs in conditions {
        let flows = runs[0].flows.iter().enumerate();
        let with_target: Vec<usize> =
            flows.filter(|(_, flow)| flow.avr.is_some()).map(|(index, _)| index).collect();
        if with_target.len() > MOST {
            return None;
        }
        for flow in with_target {
            table.add_row(row(runs, flow));
            any = true;
        }
    }
    for column in [2, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    any.then_some(table)
}

fn row(runs: &[&Run], flow: usize) -> Vec<String> {
    let of = |value: fn(&FlowResult) -> Option<f64>, decimals| {
        let values = runs.iter().map(|run| run.flows.get(flow).and_then(value));
        let values: Option<Vec<f64>> = values.collect();
        values.map_or_else(|| "-".to_owned(), |values| spread(&values, decimals))
    };
    let others: Option<Vec<f64>> = runs.iter().map(|run| jain_of_the_others(run)).collect();
    vec![
        runs[0].condition.clone(),
        runs[0].flows[flow].station.clone(),
        of(|flow| Some(flow.goodput_mbps), 2),
        of(|flow| flow.avr, 3),
        others.map_or_else(|| "-".to_owned(), |values| spread(&values, 3)),
        reserved(runs, flow),
    ]
}

/// Jain's index over the goodputs of the flows without a target.
fn jain_of_the_others(run: &Run) -> Option<f64> {
    let others = run.flows.iter().filter(|flow| flow.avr.is_none());
    crate::figures::jain(&others.map(|flow| flow.goodput_mbps).collect::<Vec<_>>())
}

/// The words of the first repeat, with the mean time over all.
fn reserved(runs: &[&Run], flow: usize) -> String {
    let of = |run: &&Run| run.flows.get(flow)?.reservation;
    let all: Vec<FlowReservation> = runs.iter().filter_map(of).collect();
    let Some(first) = all.first() else { return "-".to_owned() };
    let times: Vec<f64> = all.iter().map(|one| one.admitted_s).collect();
    FlowReservation { admitted_s: mean(&times).unwrap_or(0.0), ..*first }.words()
}
