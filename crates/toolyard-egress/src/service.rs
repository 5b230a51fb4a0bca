//! Services that are tools: one request for each attempt of a call.
//!
//! ```text
//!   Service ─► RemoteService ─► call(Given) ─┬─ Answered            the service has answered
//!              (refused here:                ├─ NotSent             nothing has happened
//!               SetupError)                  └─ Lost                it was sent, and the rest is not known
//! ```

mod body;
mod failed;
mod headers;

pub use failed::CallFailed;

use crate::{
    address::Addresses, egress::Egress, exchange::Arriving, setup_error::SetupError, target::Target,
};
use http::{HeaderMap, Response, header::RETRY_AFTER};
use http_body_util::Full;
use hyper::body::Bytes;
use std::fmt;
use toolyard_core::Service;
use toolyard_program::{Answered, Given};

/// A service that is called over HTTP, by the contract of programs that are tools (SB-2).
///
/// Every request has a connection of its own, and is sent once: no redirect is followed, no proxy of the environment is
/// used, nothing is compressed. A response has at most 100 headers, and 64 KiB of them.
///
/// # Examples
/// ```
/// # use serde_json::json;
/// # use toolyard_core::{ContextParts, OutputKind, Service, ToolContext, ToolError, ToolOutput};
/// # use toolyard_egress::{Egress, RemoteService};
/// # use toolyard_program::Given;
/// # use tokio::time::Instant;
/// # use std::time::SystemTime;
/// async fn count(egress: &Egress, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
///     let service = Service::new("http://tools.example/word_count");
///     let service = RemoteService::new(&service, egress).map_err(|error| error.tool_error())?;
///     let arguments = json!({"text": "so much depends"});
///     let given = Given::new(&arguments, cx, Instant::now());
///     let answered = service.call(&given, None).await.map_err(|failed| failed.tool_error())?;
///     answered.result(OutputKind::Text, SystemTime::now())
/// }
/// # let _ = count;
/// ```
pub struct RemoteService {
    target: Target,
    headers: HeaderMap,
    output_bytes: usize,
}

impl RemoteService {
    /// A service that can be called. The first with an `https:` URL reads the certificate authorities.
    ///
    /// # Errors
    /// [`SetupError`]: its URL or one of its headers is not valid, its address may not be dialled, or it needs TLS,
    /// which cannot be had.
    pub fn new(service: &Service, egress: &Egress) -> Result<Self, SetupError> {
        let target = Target::new(&service.url, Addresses::with_private(service.allow_private), egress)?;
        let headers = headers::of_service(service, &target)?;
        Ok(Self { target, headers, output_bytes: service.output_bytes })
    }

    /// Calls it. `traceparent` is the header of that name, by W3C Trace Context; what is no such header is left out.
    ///
    /// # Errors
    /// [`CallFailed`], which knows whether anything may have happened there.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection. The service may have begun by then.
    pub async fn call(&self, given: &Given<'_>, traceparent: Option<&str>) -> Result<Answered, CallFailed> {
        let headers = headers::of_call(&self.headers, given.key(), traceparent)?;
        let response = self.target.post(headers, Bytes::from(given.request())).await?;
        self.answered(response).await
    }

    async fn answered(&self, response: Response<Arriving<Full<Bytes>>>) -> Result<Answered, CallFailed> {
        let (head, body) = response.into_parts();
        let retry_after =
            head.headers.get(RETRY_AFTER).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let read = body::read(body, self.output_bytes).await;
        match read.broke {
            // Of a failure the status says enough.
            Some(why) if head.status.is_success() => Err(self.target.lost(why)),
            _ => Ok(Answered { status: head.status.as_u16(), retry_after, body: read.into_kept() }),
        }
    }
}

impl fmt::Debug for RemoteService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteService").field("target", &self.target).finish_non_exhaustive()
    }
}
