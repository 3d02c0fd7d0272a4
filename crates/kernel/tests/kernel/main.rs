//! The BPF programs on the running kernel, in namespaces of the test's own. As root only.

mod bounds;
mod monitor;
mod path;
mod registration;
mod rig;
