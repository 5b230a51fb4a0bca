//! For systems without a terminal that can be read beside standard input.

use super::{page::Page, reply::Reply};
use crate::screen::Screen;
use std::{convert::Infallible, io};
use toolyard::ApprovalRequest;

/// A terminal that cannot exist.
#[derive(Clone)]
pub(in super::super) struct Terminal(Infallible);

impl Terminal {
    /// Fails, because there is none.
    pub(super) fn open() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "asking is not supported on this system"))
    }

    pub(super) fn is_foreground(&self) -> bool {
        match self.0 {}
    }

    pub(in super::super) async fn idle(&self) {
        match self.0 {}
    }

    pub(super) async fn ask(&self, _: &ApprovalRequest, _: Page, _: Option<Screen>) -> Reply {
        match self.0 {}
    }
}
