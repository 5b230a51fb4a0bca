//! Input that a server of a newer protocol needs before a call can go on. It asks for input in place of an answer, and
//! the call is sent again with the input. So it is certain which call the questions belong to.

use super::{asked::Questions, caller::Caller};
use crate::client::text::clean;
use futures::future::try_join_all;
use rmcp::model::{InputRequiredResult, InputResponses};
use std::time::Duration;
use tokio::time::sleep;

/// Maximum number of requests for one call.
pub(crate) const ROUNDS_MAX: usize = 10;

/// The wait before the next request if the server asked for no input.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Maximum number of characters of a failure's description.
const WHY_MAX: usize = 500;

/// What to send with the next request: the answers, and the server's state as it came.
pub(crate) type Answers = (Option<InputResponses>, Option<String>);

/// Has one client answer everything that is asked, all at once.
///
/// # Errors
/// Why an answer cannot be given.
pub(crate) async fn answer(
    questions: &Questions,
    caller: &Caller,
    asked: InputRequiredResult,
) -> Result<Answers, String> {
    let requests = asked.input_requests.unwrap_or_default();
    if requests.is_empty() {
        if asked.request_state.is_none() {
            return Err("it does not say which".to_owned());
        }
        sleep(RETRY_AFTER).await;
        return Ok((None, asked.request_state));
    }
    let answers = requests.into_iter().map(|(name, request)| async move {
        questions.input(caller, request).await.map(|answer| (name, answer))
    });
    let answers = try_join_all(answers).await.map_err(|error| clean::text(&error.message, WHY_MAX))?;
    Ok((Some(answers.into_iter().collect()), asked.request_state))
}
