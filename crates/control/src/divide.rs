//! A station's bounds shared out among its connections.

use wakeai_units::Segments;

use crate::{Bounds, ConnectionView};

/// The bounds of each sending connection, by id.
///
/// Equal parts; what is left over goes to the first ones, so that the parts add up to `bounds`
/// again. A ceiling leaves every connection at least one segment, since a window of zero would
/// stop it for good. An absent bound stays absent. A new connection may start with the part that
/// it would get as one more: [`divide`] over the sending ones and itself.
pub fn divide(bounds: Bounds, connections: &[ConnectionView]) -> Vec<(u64, Bounds)> {
    let sending: Vec<u64> = connections.iter().filter(|c| c.sending).map(|c| c.id).collect();
    let count = u32::try_from(sending.len()).unwrap_or(u32::MAX).max(1);
    let part = |total: Segments, index: u32| {
        Segments::new(total.get() / count + u32::from(index < total.get() % count))
    };
    (0..)
        .zip(sending)
        .map(|(index, id)| {
            let ceiling = if bounds.ceiling == Segments::MAX {
                Segments::MAX
            } else {
                part(bounds.ceiling, index).max(Segments::new(1))
            };
            let floor = part(bounds.floor, index).min(ceiling);
            let pacing = bounds.pacing.map(|rate| rate / u64::from(count));
            (id, Bounds { floor, ceiling, pacing })
        })
        .collect()
}
