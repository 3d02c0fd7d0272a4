//! The server: takes uploads over tus and keeps them in one directory.
