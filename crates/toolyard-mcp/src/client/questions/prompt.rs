//! Prompts that a server wants a client's model to answer. A person looks at them first, so they are made fit to be
//! seen, and bounded.

use crate::client::text::{TooLarge, clean, size};
use rmcp::model::{CreateMessageRequestParams, SamplingContent, SamplingMessageContentBlock as Block};

/// Maximum number of messages.
const MESSAGES_MAX: usize = 256;

/// Maximum size of a whole request, images included, in bytes.
const PROMPT_BYTES_MAX: usize = 4 << 20;

/// Why a model is not asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// Tools, which were not declared as supported.
    #[error("tools in sampling are not supported")]
    Tools,
    /// Too many messages.
    #[error("the sampling request has more than {MESSAGES_MAX} messages")]
    TooMany,
    /// Messages that are too long.
    #[error("the sampling request has more than {PROMPT_BYTES_MAX} bytes")]
    Large,
}

/// Makes a request fit to be shown, or refuses it.
pub(crate) fn fit(mut asked: CreateMessageRequestParams) -> Result<CreateMessageRequestParams, Unfit> {
    if asked.tools.is_some() || asked.tool_choice.is_some() {
        return Err(Unfit::Tools);
    }
    if asked.messages.len() > MESSAGES_MAX {
        return Err(Unfit::TooMany);
    }
    size::of(&asked, PROMPT_BYTES_MAX).map_err(|TooLarge| Unfit::Large)?;
    asked.system_prompt.iter_mut().for_each(clean_text);
    for message in &mut asked.messages {
        match &mut message.content {
            SamplingContent::Single(block) => clean_block(block)?,
            SamplingContent::Multiple(blocks) => blocks.iter_mut().try_for_each(clean_block)?,
        }
    }
    let preferences = asked.model_preferences.iter_mut();
    let names = preferences.flat_map(|all| all.hints.iter_mut().flatten()).flat_map(|hint| &mut hint.name);
    names.for_each(clean_text);
    Ok(asked)
}

fn clean_block(block: &mut Block) -> Result<(), Unfit> {
    match block {
        Block::Text(text) => clean_text(&mut text.text),
        Block::Image(_) | Block::Audio(_) => {}
        _ => return Err(Unfit::Tools),
    }
    Ok(())
}

fn clean_text(text: &mut String) {
    // Never cut: the request as a whole is within this bound.
    *text = clean::text(text, PROMPT_BYTES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(messages: Value) -> Result<Value, Unfit> {
        let asked = json!({
            "messages": messages,
            "systemPrompt": "Be\u{e0041} brief",
            "modelPreferences": {"hints": [{"name": "small\u{202e}"}]},
            "maxTokens": 5,
        });
        fit(serde_json::from_value(asked).unwrap()).map(|asked| serde_json::to_value(asked).unwrap())
    }

    fn message(content: Value) -> Value {
        json!({"role": "user", "content": content})
    }

    /// Nothing is hidden from the person, and images are unchanged.
    #[test]
    fn nothing_hides_in_a_prompt() {
        let text = |text| json!({"type": "text", "text": text});
        let picture = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let said = json!([message(text("a\u{202e}b")), message(json!([text("c\u{1b}[2Kd"), picture]))]);
        let shown = asked(said).unwrap();
        assert_eq!(shown["messages"], json!([message(text("ab")), message(json!([text("c[2Kd"), picture]))]));
        assert_eq!(shown["systemPrompt"], "Be brief");
        assert_eq!(shown["modelPreferences"]["hints"][0]["name"], "small");
    }

    #[test]
    fn what_is_too_much_or_was_not_declared_is_refused() {
        let text = |bytes| message(json!({"type": "text", "text": "x".repeat(bytes)}));
        assert_eq!(asked(json!(vec![text(1); MESSAGES_MAX + 1])), Err(Unfit::TooMany));
        assert!(asked(json!(vec![text(1); MESSAGES_MAX])).is_ok());
        assert_eq!(asked(json!([text(PROMPT_BYTES_MAX)])), Err(Unfit::Large));
        let tool = json!({"type": "tool_use", "id": "1", "name": "x", "input": {}});
        assert_eq!(asked(json!([message(tool)])), Err(Unfit::Tools));
    }
}
