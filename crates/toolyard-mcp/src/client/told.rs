//! Why a server cannot be spoken to, in words.

use rmcp::service::ServiceError;
use std::error::Error;
#[cfg(feature = "http")]
use {super::clean, rmcp::transport::streamable_http_client::StreamableHttpError};

/// The most characters of a server's own words in it.
#[cfg(feature = "http")]
const WORDS_MAX: usize = 200;

/// What came of a request over HTTP.
#[cfg(feature = "http")]
pub(super) type Fault = StreamableHttpError<reqwest::Error>;

/// Why a request has no result.
pub(super) fn service(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) => causes(error.error.as_ref()),
        error => error.to_string(),
    }
}

/// An error and what it comes from.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    #[cfg(feature = "http")]
    if let Some(found) = find(error) {
        return fault(found);
    }
    chain(error)
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What came of a request, where that is what an error comes from.
#[cfg(feature = "http")]
pub(super) fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Fault> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// What came of a request, in words. The URL is not among them: there may be a secret in it.
#[cfg(feature = "http")]
pub(super) fn fault(fault: &Fault) -> String {
    let words = |said: &str| clean::text(said, WORDS_MAX);
    match fault {
        Fault::Client(error) => {
            let why = error.source().map_or_else(|| error.to_string(), chain);
            // The one fault of a certificate that is more often here than there.
            let who = match why.ends_with("UnknownIssuer") {
                true => ", for nobody who is trusted here vouches for its certificate: is a ca missing?",
                false => "",
            };
            if error.is_redirect() { why } else { format!("it cannot be reached: {why}{who}") }
        }
        Fault::AuthRequired(wanted) => {
            format!("it wants a token, or another one (HTTP 401: {})", words(&wanted.www_authenticate_header))
        }
        Fault::InsufficientScope(wanted) => {
            format!("its token is not enough (HTTP 403: {})", words(&wanted.www_authenticate_header))
        }
        Fault::HttpStatus(answer) => format!("it answered HTTP {}", answer.status),
        Fault::UnexpectedContentType(Some(kind)) => {
            format!("it answered with {}, which is not MCP: is this its URL?", words(kind))
        }
        Fault::UnexpectedContentType(None) => "it answered with nothing, which is not MCP".to_owned(),
        Fault::UnexpectedServerResponse(said) => unexpected(&words(said)),
        Fault::ResponseBodyTooLarge { max_size } => format!("it answered more than {max_size} bytes"),
        Fault::SessionExpired => "it has forgotten the session, and a new one was of no use".to_owned(),
        other => words(&chain(other)),
    }
}

/// What rmcp says of an answer, without the names of its types.
#[cfg(feature = "http")]
fn unexpected(said: &str) -> String {
    if let Some((_, why)) = said.strip_prefix("could not parse JSON").and_then(|rest| rest.split_once(": ")) {
        return format!("what it answered is no message of MCP: {why}");
    }
    match said.starts_with("expect ") {
        true => "it answered with nothing".to_owned(),
        false => format!("it answered {said}"),
    }
}
