//! The drivers: sockets and the real clock around the state machines.

pub(crate) mod clock;
mod listen;
mod receive;
mod run;
mod sender;
mod serve;
mod solo;

pub use listen::{Heard, Stop};
pub use run::{BufferProbe, ProbeError, ProbePeer, ProbeProgress, probe_buffer};
pub use sender::SendError;
pub use serve::ProbeSockets;
pub use solo::probe_solo;
