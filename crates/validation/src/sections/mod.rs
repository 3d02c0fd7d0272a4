//! The page's sections: each runs what it needs, writes its part, and says what is held.

pub mod av;
pub mod cases;
pub mod dense;
pub mod kozu;
pub mod lab;
pub mod lte;
pub mod saturation;
pub mod single;
pub mod split;
pub mod unequal;
pub mod wlan;
