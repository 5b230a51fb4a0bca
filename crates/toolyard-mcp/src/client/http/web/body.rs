//! Bodies of bounded size.

use super::request::http;
use crate::client::protocol::{Pace, RequestError, WebError};
use reqwest::Response;

/// The body of an answer, read no further than to this size.
///
/// # Errors
/// It is larger, takes too long, or breaks off.
///
/// # Cancel safety
/// Dropping the future loses the answer.
pub(crate) async fn read(
    mut response: Response,
    bytes_max: usize,
    pace: &mut Pace,
) -> Result<Vec<u8>, RequestError> {
    let too_large = || RequestError::ResponseBodyTooLarge { max_size: bytes_max };
    if response.content_length().is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    loop {
        let read = pace.read(body.len(), response.chunk()).await;
        let Some(chunk) = read.map_err(|slow| RequestError::Client(WebError::Slow(slow)))?.map_err(http)?
        else {
            return Ok(body);
        };
        if chunk.len() > bytes_max - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
}
