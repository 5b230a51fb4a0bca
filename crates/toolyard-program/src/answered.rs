//! What a service answered, as the result of its call.

use crate::output::Kept;
use std::time::SystemTime;
use toolyard_core::{OutputKind, ToolError, ToolOutput};

/// The answer of a service that is a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status of HTTP.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Kept,
}

impl Answered {
    /// The result of its call (SB-2): 2xx is success; 429 and 503 may pass, after the time they name (RT-3); other 5xx
    /// may pass, and what the service has done is unknown; anything else is a failure with what the service said.
    /// `now` is what a date in `Retry-After` is compared with.
    ///
    /// # Errors
    /// [`ToolError`], unless the service succeeded.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use toolyard_core::{OutputKind, ToolErrorKind};
    /// use toolyard_program::{Answered, Kept};
    /// let busy = Answered { status: 429, retry_after: Some("2".to_owned()), body: Kept::whole("") };
    /// let error = busy.result(OutputKind::Text, SystemTime::now()).unwrap_err();
    /// assert_eq!(error.kind(), ToolErrorKind::RateLimited);
    /// assert_eq!(error.retry_after_hint(), Some(Duration::from_secs(2)));
    /// ```
    pub fn result(self, kind: OutputKind, now: SystemTime) -> Result<ToolOutput, ToolError> {
        let said = self.said();
        let error = match self.status {
            200..=299 => return self.body.read(kind),
            429 => ToolError::rate_limited(said, None),
            503 => ToolError::transient(said),
            500..=599 => ToolError::transient(said).outcome_unknown(),
            300..=399 => ToolError::execution(format!("{said}: a redirect, which is not followed")),
            _ => ToolError::execution(said),
        };
        Err(match (self.status, self.retry_after) {
            (429 | 503, Some(after)) => error.retry_after_header(&after, now),
            _ => error,
        })
    }

    fn said(&self) -> String {
        match self.body.text.trim() {
            "" => format!("HTTP {}", self.status),
            body => format!("HTTP {}: {body}", self.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use toolyard_core::ToolErrorKind;

    fn answered(status: u16, retry_after: Option<&str>) -> Result<ToolOutput, ToolError> {
        let body = Kept::whole("{\"a\":1}");
        let retry_after = retry_after.map(str::to_owned);
        Answered { status, retry_after, body }.result(OutputKind::Json, SystemTime::UNIX_EPOCH)
    }

    /// SB-2: the status decides.
    #[test]
    fn the_status_decides() {
        assert_eq!(answered(201, None).unwrap().to_text(), "{\"a\":1}");
        for (status, kind, is_unknown) in [
            (429, ToolErrorKind::RateLimited, false),
            (503, ToolErrorKind::Transient, false),
            (502, ToolErrorKind::Transient, true),
            (404, ToolErrorKind::Execution, false),
            (302, ToolErrorKind::Execution, false),
            (101, ToolErrorKind::Execution, false),
        ] {
            let error = answered(status, None).unwrap_err();
            assert_eq!((error.kind(), error.has_unknown_outcome()), (kind, is_unknown), "{status}");
            assert!(error.message().starts_with(&format!("HTTP {status}: ")), "{}", error.message());
        }
    }

    /// RT-3: only those that ask for patience are heard.
    #[test]
    fn a_time_to_wait_counts_where_it_is_meant() {
        let after = |status| answered(status, Some("7")).unwrap_err().retry_after_hint();
        assert_eq!([after(429), after(503)], [Some(Duration::from_secs(7)); 2]);
        assert_eq!([after(500), after(404)], [None, None]);
    }
}
