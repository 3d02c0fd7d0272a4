//! The live screen of TCP connections.
//!
//! A [`Reading`] is what was seen at one moment. [`Live`] reads this machine, [`Recorder`] writes readings into a
//! directory, and [`Replay`] reads them back, or makes them of the records of an experiment. The screen is a function of
//! the readings of the last minute and of the user's [`View`]: [`draw`]. So a replay shows what was seen, frame by frame.

mod columns;
mod json;
mod reading;
mod record;
mod run;
mod screen;
mod source;
mod view;

pub use columns::Column;
pub use json::to_json;
pub use reading::{ConnectionId, End, Events, Limit, Reading, SeenConnection};
pub use record::{RecordError, Recorder, Replay, ReplayError, RunChoice};
pub use run::{LiveFeed, RunError, replay_on_screen, watch_on_screen};
pub use screen::{Status, draw, table_text as table};
pub use source::{FindSockets, Live, LiveError};
pub use view::{Action, Filter, Page, View};
