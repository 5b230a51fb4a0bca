//! What every result says beside its output, whatever else stands around it.

use super::times::Times;
use crate::{FieldError, fields::Reader, json::Fields};
use serde_json::json;
use toolyard_core::{Dedupe, Sandbox};

pub(super) const ATTEMPTS: &str = "attempts";
const DEDUPE: &str = "dedupe";
const SANDBOX: &str = "sandbox";
const RECORDED: &str = "recorded";

pub(super) const SANDBOXES: &str = "host, process, landlock, wasm, micro_vm, remote";
pub(super) const DEDUPES: &str = "fresh, joined, replayed, reconciled";

/// How a call was run, in a result's meta and in an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// How often the handler was started.
    pub(crate) attempts: u32,
    pub(crate) dedupe: Dedupe,
    pub(crate) times: Times,
    pub(crate) sandbox: Sandbox,
    pub(crate) recorded: bool,
}

impl Facts {
    /// All but `recorded`, which has [a place of its own](Self::write_recorded).
    pub(crate) fn write(self, fields: &mut Fields) {
        fields.insert(ATTEMPTS.to_owned(), self.attempts.into());
        fields.insert(DEDUPE.to_owned(), json!(self.dedupe));
        self.times.write(fields);
        fields.insert(SANDBOX.to_owned(), self.sandbox.as_str().into());
    }

    /// Only what is not recorded says so.
    pub(crate) fn write_recorded(self, fields: &mut Fields) {
        if !self.recorded {
            fields.insert(RECORDED.to_owned(), false.into());
        }
    }

    /// Takes them. `attempts`, `duration_ms` and `sandbox` have to be there.
    pub(crate) fn take(reader: &mut Reader) -> Result<Self, FieldError> {
        Ok(Self {
            attempts: reader.must(ATTEMPTS, Reader::count)?,
            sandbox: reader.must(SANDBOX, |reader, key| reader.word(key, SANDBOXES))?,
            dedupe: reader.word(DEDUPE, DEDUPES)?.unwrap_or_default(),
            times: Times::take(reader)?,
            recorded: reader.flag(RECORDED)?.unwrap_or(true),
        })
    }
}
