//! The bounds of a proxy.

use std::time::Duration;

/// The bounds of a proxy, over all its connections.
///
/// # Examples
/// ```
/// use toolyard_egress::ProxyLimits;
/// let limits = ProxyLimits { bytes_up: Some(1 << 20), ..ProxyLimits::default() };
/// assert_eq!(limits.connections, 64);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Connections at once; 64 by default, at least one. One more waits until another has ended.
    pub connections: usize,
    /// The bytes that programs may send in all, but for what is refused. Unbounded by default.
    pub bytes_up: Option<u64>,
    /// The bytes that programs may get in all, but for refusals. Unbounded by default.
    pub bytes_down: Option<u64>,
    /// How long nothing may pass on a connection before it ends; 5 min by default.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self { connections: 64, bytes_up: None, bytes_down: None, idle: Duration::from_mins(5) }
    }
}
