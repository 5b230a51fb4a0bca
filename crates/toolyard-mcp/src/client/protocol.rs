//! Messages of a server, over either transport: read within bounds, looked at, and answered.

pub(crate) mod answer;
pub(crate) mod describe;
#[cfg(feature = "http")]
pub(crate) mod error;
pub(crate) mod greeting;
pub(crate) mod handshake;
pub(crate) mod inspect;
pub(crate) mod intake;
pub(crate) mod line;
pub(crate) mod transport;

#[cfg(feature = "http")]
pub(crate) use error::{Cut, RequestError, WebError};
#[cfg(feature = "http")]
pub(crate) use greeting::unanswered;
pub(crate) use greeting::{AnswerTimeouts, DISCOVER_TIMEOUT};
pub(crate) use handshake::{Handshake, StartFailure};
pub(crate) use inspect::{Disconnect, ENDED, Inspected};
#[cfg(feature = "http")]
pub(crate) use intake::Pace;
pub(crate) use intake::{Intake, Paced};
pub(crate) use transport::Pipes;
