//! The way to a server over streamable HTTP.

use super::{config::Remote, frame::LINE_BYTES_MAX};
use rmcp::{
    RoleClient,
    transport::{
        StreamableHttpClientTransport, Transport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use std::{sync::Arc, time::Duration};

/// The most requests at once: the engine has bounds of its own, and a call must not wait in two lines.
const REQUESTS_MAX: usize = 1024;

/// How often a stream that broke off is asked for again, and after which wait at first; each next one is twice as long.
const RESUMES_MAX: usize = 3;
const RESUME_WAIT: Duration = Duration::from_millis(200);

/// The way to it; nothing is sent yet.
pub(super) fn connect(remote: &Remote) -> impl Transport<RoleClient> + 'static {
    let mut config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str());
    config.max_concurrent_requests = REQUESTS_MAX;
    config.max_sse_event_size = LINE_BYTES_MAX;
    // Without a bound, a call whose server is gone would wait for its timeout.
    let mut retry = ExponentialBackoff::default();
    (retry.max_times, retry.base_duration) = (Some(RESUMES_MAX), RESUME_WAIT);
    config.retry_config = Arc::new(retry);
    config.auth_header = remote.bearer.clone();
    StreamableHttpClientTransport::from_config(config)
}
