//! What a server asks of us while a call runs, and of whom it is asked.

#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
pub(crate) mod asked;
pub(crate) mod caller;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
pub(crate) mod calls;
pub(crate) mod form;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
pub(crate) mod handler;
pub(crate) mod input;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
pub(crate) mod prompt;

pub(crate) use asked::Questions;
pub(crate) use caller::CallLink;
pub(crate) use calls::Calls;
pub(crate) use handler::Handler;
