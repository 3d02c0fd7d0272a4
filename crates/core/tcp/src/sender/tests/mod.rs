//! A sender and a receiver over a path that loses, delays, reorders and copies.

mod path;
mod transfers;
