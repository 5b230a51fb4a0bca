//! Describes why a server cannot be spoken to.

#[cfg(feature = "http")]
use super::error::{RequestError, WebError};
#[cfg(feature = "http")]
use crate::client::text::clean;
use rmcp::service::ServiceError;
use std::error::Error;
#[cfg(feature = "http")]
use toolyard_egress::NotSent;

/// Maximum number of characters of a server's own words in a description.
#[cfg(feature = "http")]
const WORDS_MAX: usize = 200;

/// Describes why a request has no result.
pub(crate) fn service(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => error.message.to_string(),
        ServiceError::TransportSend(error) => causes(error.error.as_ref()),
        error => error.to_string(),
    }
}

/// Describes an error and its causes.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    #[cfg(feature = "http")]
    if let Some(found) = find(error) {
        return http(found);
    }
    chain(error)
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The HTTP error among the causes of an error, if there is one.
#[cfg(feature = "http")]
pub(crate) fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a RequestError> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// Why an address was not dialled, if that is why a request failed (SB-10).
#[cfg(feature = "http")]
pub(crate) fn refused<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a NotSent> {
    let mut all = std::iter::successors(Some(error), |error| (*error).source());
    all.find_map(|error| error.downcast_ref()).filter(|why| matches!(why, NotSent::Refused { .. }))
}

/// Describes an HTTP error. The URL is left out, because it may contain a secret.
#[cfg(feature = "http")]
pub(crate) fn http(error: &RequestError) -> String {
    let words = |text: &str| clean::text(text, WORDS_MAX);
    match error {
        RequestError::Client(WebError::Http(error)) => {
            if let Some(refused) = refused(error) {
                return format!("{refused}: set allow_private = true if it is meant to be reached");
            }
            let why = error.source().map_or_else(|| error.to_string(), chain);
            // The one certificate error whose cause is more often on this side.
            let who = match why.ends_with("UnknownIssuer") {
                true => " (its certificate is not signed by a trusted authority: is a ca missing?)",
                false => "",
            };
            if error.is_redirect() { why } else { format!("it cannot be reached: {why}{who}") }
        }
        RequestError::AuthRequired(wanted) => {
            format!(
                "its token is missing or not valid (HTTP 401: {})",
                words(&wanted.www_authenticate_header)
            )
        }
        RequestError::Client(WebError::Forbidden(wanted)) => {
            format!("its token lacks permission (HTTP 403: {})", words(wanted))
        }
        RequestError::Client(other) => words(&other.to_string()),
        RequestError::HttpStatus(answer) => format!("it answered HTTP {}", answer.status),
        RequestError::UnexpectedContentType(Some(kind)) => {
            format!("it answered with {}, which is not MCP: is this its URL?", words(kind))
        }
        RequestError::UnexpectedContentType(None) => {
            "its answer is empty, which is not MCP: is this its URL?".to_owned()
        }
        RequestError::UnexpectedServerResponse(text) => unexpected(&words(text)),
        RequestError::ResponseBodyTooLarge { max_size } => {
            format!("its answer has more than {max_size} bytes")
        }
        RequestError::SessionExpired => "the session expired, and a new one failed as well".to_owned(),
        other => words(&chain(other)),
    }
}

/// Rewords rmcp's description of an answer, without the names of its types.
#[cfg(feature = "http")]
fn unexpected(text: &str) -> String {
    match text.starts_with("expect ") {
        true => "its answer is empty".to_owned(),
        false => format!("it answered {text}"),
    }
}
