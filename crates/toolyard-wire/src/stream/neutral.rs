//! Neutral streams: each event is a complete call or batch.

use super::Assemble;
use crate::{DecodeError, decode::neutral_calls, found::Found};
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Lines;

impl Assemble for Lines {
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError> {
        out.append(neutral_calls(event)?);
        Ok(())
    }
}
