//! The page on which people watch the engine and answer its questions, and the same page as a report in one file.
//!
//! ```text
//!   assets/ ─► include_str! ─┬─► asset(path)          one file of the live page, for a server
//!                            └─► bundle ─► Report     events and all modules in one HTML file, without a server
//! ```
//!
//! Nothing is built, and nothing comes from elsewhere: the files are plain modules and style sheets, and
//! [`PAGE_POLICY`] and the policy within a report let a browser load nothing else. The crate knows events only as
//! JSON texts; what they mean is up to the page.

mod assets;
mod bundle;
mod policy;
mod report;

pub use assets::{Asset, asset};
pub use policy::PAGE_POLICY;
pub use report::{EVENT_BYTES_MAX, NotAnEvent, Report};
