//! The client: sends a file in pieces, each over a connection of its own.
