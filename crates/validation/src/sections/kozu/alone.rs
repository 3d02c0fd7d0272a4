//! Figure 3: one phone alone.

use super::{ALGORITHMS, BOTTLENECKS, RTTS, job};
use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, optional};
use crate::statistics::mean;

const FILE: &str = "kozu-single";

/// Figure 3's line, with the buffers of today and of then, and the same of the changed CUBIC.
pub(super) fn write(context: &Context, page: &mut Page) -> anyhow::Result<()> {
    page.heading(3, "Figure 3: one phone alone, Mbit/s");
    let mut table =
        Table::new(&["bottleneck", "algorithm", "buffers", "128 ms", "256", "512", "1024"]);
    let profiles = [("64 MB", "linux"), ("4 MB", "classic")];
    for (prefix, bottleneck) in BOTTLENECKS {
        for (word, algorithm) in ALGORITHMS {
            for (buffers, tcp) in profiles {
                let at = |rtt: u32| -> anyhow::Result<String> {
                    let job = job(FILE, &format!("{prefix}-{word}-{rtt}"));
                    Ok(optional(goodput(context, &job.set("stations.phone.tcp", tcp))?, 1))
                };
                let [a, b, c, d] = RTTS;
                let head = [bottleneck, algorithm, buffers].map(str::to_owned);
                let [bottleneck, algorithm, buffers] = head;
                table.row([bottleneck, algorithm, buffers, at(a)?, at(b)?, at(c)?, at(d)?]);
            }
        }
    }
    page.table(&table);
    page.paragraph(
        "The paper: the throughput falls as the RTT grows, and at 512 and 1024 ms is far from what \
         the wireless LAN carries. Here a path of 1024 ms is not filled either: 4 MB are 31 Mbit/s \
         there, less with the delay of a queue, and a FIFO of 200 packets is an eighth of what is \
         under way, so the window that a loss leaves does not fill the path. What else the paper's \
         phones lost, with uploads from a browser over a real radio, is not here.",
    );
    let shown = job(FILE, "air-standard-1024").set("stations.phone.tcp", "classic");
    page.commands(&[shown.command_of(context.seeds)]);
    Ok(())
}

fn goodput(context: &Context, job: &Job) -> anyhow::Result<Option<f64>> {
    let runs = context.runs(job, context.seeds)?;
    Ok(mean(&runs.iter().map(|run| run.total_goodput_mbps).collect::<Vec<_>>()))
}
