//! Figures of a running program for Prometheus.
//!
//! A program builds a [`Page`] of its figures whenever it is asked: families of counters, gauges and
//! histograms, from the counters that it keeps anyway. [`Page::text`] writes the page in one of the two
//! formats that Prometheus reads. [`Endpoint`] serves it over HTTP: [`Endpoint::bind`] comes before
//! privileges are given up, and [`Endpoint::serve`] then runs on the program's own thread.

mod address;
mod endpoint;
mod format;
mod histogram;
mod page;

pub use address::{AddressError, Local, is_this_machine};
pub use endpoint::{BindError, Endpoint, PATH};
pub use format::Format;
pub use histogram::Histogram;
pub use page::{Family, Kind, Page, Unit};
