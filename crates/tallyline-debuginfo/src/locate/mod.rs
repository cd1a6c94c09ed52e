//! The files that hold a program's debug information: beside it, where the system has them, at debuginfod's servers.
//!
//! This is the only module of the crate that touches the file system and the environment:
//! `TALLYLINE_DEBUG_FOLDER` (default `/usr/lib/debug`) unless the program [sets folders](set_debug_folders), and debuginfod's own variables.

mod companions;
pub mod debug_file;
pub mod debuginfod;
mod folders;

pub use companions::CompanionFinder;
pub use folders::set_debug_folders;
