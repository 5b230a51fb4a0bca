//! What a program used while it ran.

use crate::{ToolError, ToolOutput};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the program of a call used, as far as its sandbox knows (SB-9): the last attempt of it, if there were several.
///
/// Calls that are no programs have none: how long those took, their result says anyway.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::{ToolOutput, Usage};
/// let usage = Usage::lasting(Duration::from_millis(120)).cpu(Duration::from_millis(80)).memory_peak(3 << 20);
/// let output = ToolOutput::text("done").with_usage(usage);
/// assert_eq!(output.usage().unwrap().memory_peak_bytes, Some(3 << 20));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// From its start to the end of all its processes, in milliseconds.
    pub wall_ms: u64,
    /// Processor time, in milliseconds: of all its processes together where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The most memory that it had at a time, in bytes. What is counted, its sandbox says: the largest process alone, or
    /// all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// How many connections it made through its way out, also refused ones; of a program that has none nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_connections: Option<u64>,
    /// The bytes that it sent by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_up_bytes: Option<u64>,
    /// The bytes that it got by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_down_bytes: Option<u64>,
}

impl Usage {
    /// That of a program that ran for this long, and of which nothing else is known.
    pub fn lasting(wall: Duration) -> Self {
        Self {
            wall_ms: millis(wall),
            cpu_ms: None,
            memory_peak_bytes: None,
            net_connections: None,
            net_up_bytes: None,
            net_down_bytes: None,
        }
    }

    /// Sets the processor time.
    #[must_use]
    pub fn cpu(mut self, time: Duration) -> Self {
        self.cpu_ms = Some(millis(time));
        self
    }

    /// Sets the most memory that it had at a time, in bytes.
    #[must_use]
    pub fn memory_peak(mut self, bytes: u64) -> Self {
        self.memory_peak_bytes = Some(bytes);
        self
    }

    /// Sets what passed through its way out: how many connections, and the bytes sent and got by them (SB-10).
    #[must_use]
    pub fn network(mut self, connections: u64, up: u64, down: u64) -> Self {
        (self.net_connections, self.net_up_bytes, self.net_down_bytes) =
            (Some(connections), Some(up), Some(down));
        self
    }

    /// The result of a call whose program used this: it says so whether the call failed or not.
    ///
    /// # Errors
    /// That of the result.
    pub fn told_in(self, result: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        match result {
            Ok(output) => Ok(output.with_usage(self)),
            Err(error) => Err(error.with_usage(self)),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SB-9: what is not known is not written, and reads back as such.
    #[test]
    fn it_is_written_as_far_as_it_is_known() {
        let wall = Usage::lasting(Duration::from_micros(1_999));
        assert_eq!(serde_json::to_value(wall).unwrap(), json!({"wall_ms": 1}));
        let all = wall.cpu(Duration::MAX).memory_peak(7);
        let written = serde_json::to_value(all).unwrap();
        assert_eq!(written, json!({"wall_ms": 1, "cpu_ms": u64::MAX, "memory_peak_bytes": 7}));
        assert_eq!(serde_json::from_value::<Usage>(written).unwrap(), all);
        let net = wall.network(2, 30, 400);
        let written = serde_json::to_value(net).unwrap();
        let expected = json!({"wall_ms": 1, "net_connections": 2, "net_up_bytes": 30, "net_down_bytes": 400});
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Usage>(written).unwrap(), net);
    }

    /// SB-9: a call that failed says it too, beside the output so far.
    #[test]
    fn a_failed_call_says_it_too() {
        let usage = Usage::lasting(Duration::from_millis(3));
        let of = |error: ToolError| usage.told_in(Err(error)).unwrap_err();
        let error = of(ToolError::execution("no").with_content(vec![crate::Content::text("half")]));
        assert_eq!(
            (error.output().unwrap().to_text(), error.output().unwrap().usage()),
            ("half".to_owned(), Some(usage))
        );
        assert_eq!(of(ToolError::transient("no")).output().unwrap().usage(), Some(usage));
        assert_eq!(usage.told_in(Ok(ToolOutput::text("x"))).unwrap().usage(), Some(usage));
    }
}
