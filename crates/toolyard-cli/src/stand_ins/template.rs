//! Texts with the arguments of a call in them.

use serde_json::{Map, Value};

/// A text in which `{argument}` stands for an argument of the call, and `{{` and `}}` for braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// A brace without the other one.
    #[error("a '{0}' without its other brace: write '{0}{0}' for the brace itself")]
    Brace(char),
    /// Braces with nothing, or something that is no name, in them.
    #[error(
        "'{{{0}}}' names no argument: write a name such as '{{path}}', and '{{{{' and '}}}}' for braces themselves"
    )]
    Name(String),
}

impl Template {
    /// Parses a text.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(TemplateError::Brace('}'));
            }
            let (name, after) = rest.split_once('}').ok_or(TemplateError::Brace('{'))?;
            if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "{\":,".contains(c)) {
                return Err(TemplateError::Name(name.to_owned()));
            }
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Argument(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// The arguments that it names.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Argument(name) => Some(name.as_str()),
        })
    }

    /// The text with these arguments: strings as they are, other values as JSON, and nothing for what is missing.
    pub(super) fn fill(&self, arguments: &Value) -> String {
        self.0.iter().fold(String::new(), |mut text, piece| {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Argument(name) => match arguments.get(name) {
                    Some(Value::String(value)) => text.push_str(value),
                    Some(value) => text.push_str(&value.to_string()),
                    None => {}
                },
            }
            text
        })
    }

    /// The value that it stands for: that of an argument as it is, if it is nothing else, and otherwise a text.
    fn value(&self, arguments: &Value) -> Value {
        match self.0.as_slice() {
            [Piece::Argument(name)] => arguments.get(name).cloned().unwrap_or_default(),
            _ => self.fill(arguments).into(),
        }
    }
}

/// Data whose texts are templates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DataTemplate {
    Plain(Value),
    Text(Template),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl DataTemplate {
    /// Parses the texts in a value.
    pub(crate) fn parse(value: Value) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(&text)?),
            Value::Array(items) => Self::List(items.into_iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let field = |(name, value)| Self::parse(value).map(|value| (name, value));
                Self::Object(fields.into_iter().map(field).collect::<Result<_, _>>()?)
            }
            plain => Self::Plain(plain),
        })
    }

    /// The arguments that it names.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Text(text) => text.arguments().collect(),
            Self::List(items) => items.iter().flat_map(Self::arguments).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, value)| value.arguments()).collect(),
        }
    }

    /// The data with these arguments.
    pub(crate) fn fill(&self, arguments: &Value) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => text.value(arguments),
            Self::List(items) => items.iter().map(|item| item.fill(arguments)).collect(),
            Self::Object(fields) => {
                let field = |(name, value): &(String, Self)| (name.clone(), value.fill(arguments));
                Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// KT-10: arguments stand where they are named, and doubled braces are braces.
    #[test]
    fn arguments_are_filled_in() {
        let arguments = json!({"city": "Oslo", "days": 3, "parts": ["a"]});
        let fill = |text| Template::parse(text).unwrap().fill(&arguments);
        assert_eq!(fill("{city}: {days} days {parts}{gone}"), "Oslo: 3 days [\"a\"]");
        assert_eq!(fill("{{{city}}} {{}}"), "{Oslo} {}");
        assert_eq!((fill(""), fill("no")), (String::new(), "no".to_owned()));
    }

    /// KT-10: data keep the type of an argument that stands alone.
    #[test]
    fn data_are_filled_in() {
        let data = json!({"n": "{days}", "all": ["{city}!", 1, null], "none": "{gone}"});
        let filled = DataTemplate::parse(data).unwrap().fill(&json!({"city": "Oslo", "days": 3}));
        assert_eq!(filled, json!({"n": 3, "all": ["Oslo!", 1, null], "none": null}));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        assert_eq!(Template::parse("a { b"), Err(TemplateError::Brace('{')));
        assert_eq!(Template::parse("a } b"), Err(TemplateError::Brace('}')));
        for name in ["", "a b", "\"a\": 1"] {
            assert_eq!(Template::parse(&format!("{{{name}}}")), Err(TemplateError::Name(name.to_owned())));
        }
    }
}
