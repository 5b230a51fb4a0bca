//! The HTTP client of the exporters: blocking, on their own threads, and without TLS.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::{io::Read, time::Duration};
use ureq::Agent;

/// The most bytes read of a response, which says little.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// The HTTP client that sends exported data.
#[derive(Debug)]
pub(crate) struct Client(Agent);

impl Client {
    /// A client whose requests take at most this long, from the first byte to the last.
    pub(crate) fn new(timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false) // the exporter looks at the status itself
            .max_redirects(0)
            .proxy(None) // the collector is nearby
            .build();
        Self(config.into())
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, body) = answer.into_parts();
        let mut text = Vec::new();
        body.into_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut text)?;
        Ok(Response::from_parts(parts, text.into()))
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.send(request)
    }
}
