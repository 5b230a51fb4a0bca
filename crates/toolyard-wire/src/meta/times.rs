//! The times of a result.

use crate::{FieldError, bounds::ELAPSED_MS_MAX, fields::Reader, json::Fields};
use std::time::Duration;

/// How long a call waited and ran, so that the whole milliseconds of both are those of its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Times {
    pub(crate) queued_ms: u64,
    pub(crate) ran_ms: u64,
}

impl Times {
    pub(crate) fn of(queued: Duration, ran: Duration) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let queued_ms = millis(queued).min(ELAPSED_MS_MAX);
        let ran_ms = millis(queued.saturating_add(ran)).saturating_sub(queued_ms).min(ELAPSED_MS_MAX);
        Self { queued_ms, ran_ms }
    }

    pub(crate) fn write(self, fields: &mut Fields) {
        let Self { queued_ms, ran_ms } = self;
        for (key, millis) in
            [("queued_ms", queued_ms), ("ran_ms", ran_ms), ("duration_ms", queued_ms + ran_ms)]
        {
            fields.insert(key.to_owned(), millis.into());
        }
    }

    /// Takes them; without `queued_ms` the call has not waited.
    pub(crate) fn take(reader: &mut Reader) -> Result<Self, FieldError> {
        let expected = "a whole number of milliseconds, at most 136 years";
        let queued_ms = reader.whole("queued_ms", 0..=ELAPSED_MS_MAX, expected)?.unwrap_or_default();
        let ran_ms = reader.whole("ran_ms", 0..=ELAPSED_MS_MAX, expected)?;
        let duration_ms =
            reader.must("duration_ms", |reader, key| reader.whole(key, 0..=2 * ELAPSED_MS_MAX, expected))?;
        let rest = duration_ms.checked_sub(queued_ms).filter(|rest| *rest <= ELAPSED_MS_MAX);
        match rest {
            Some(rest) if ran_ms.is_none_or(|ran_ms| ran_ms == rest) => Ok(Self { queued_ms, ran_ms: rest }),
            _ => Err(reader.conflict("duration_ms", "is not 'queued_ms' and 'ran_ms' together")),
        }
    }
}
