//! Metrics of a running program for Prometheus.
//!
//! For each request, a program builds a [`Page`] of its metrics: families of counters, gauges and
//! histograms. The values come from counters that the program keeps anyway. [`Page::text`] writes the
//! page in one of the two formats that Prometheus reads. [`Endpoint`] serves the page over HTTP. Call
//! [`Endpoint::bind`] before the program gives up its privileges. Then [`Endpoint::serve`] runs on the
//! program's own thread.

mod endpoint;
mod format;
mod page;

pub use endpoint::{BindError, Endpoint, PATH};
pub use format::Format;
pub use page::{Family, Page, Unit};
pub use prometheus_client::metrics::histogram::Histogram;
