//! Conversion to and from three older vocabularies of errors (V6).
//!
//! Old to new to old is the identity. New to old to new is not, because the old vocabularies have fewer words.

use super::ErrorKind;
use serde::{Deserialize, Serialize};

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $word:ident = $text:literal => $back:ident; )+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $( $(#[$vdoc])* #[serde(rename = $text)] $word, )+
        }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$( Self::$word, )+];

            /// The word as text.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$word => $text, )+ }
            }
        }

        impl From<$name> for ErrorKind {
            fn from(word: $name) -> Self {
                match word { $( $name::$word => Self::$back, )+ }
            }
        }
    };
}

vocabulary! {
    /// The slugs of older dispatchers.
    Slug {
        /// `tool_not_found`
        ToolNotFound = "tool_not_found" => NotFound;
        /// `fs_denied`
        FsDenied = "fs_denied" => FsDenied;
        /// `permission_denied`
        PermissionDenied = "permission_denied" => PermissionDenied;
        /// `invalid_args`
        InvalidArgs = "invalid_args" => InvalidInput;
        /// `tool_failed`
        ToolFailed = "tool_failed" => ExecutionError;
    }
}

vocabulary! {
    /// The failure classes of older event logs.
    OldClass {
        /// `not_found`
        NotFound = "not_found" => NotFound;
        /// `permission_denied`
        PermissionDenied = "permission_denied" => PermissionDenied;
        /// `user_denied`
        UserDenied = "user_denied" => UserDenied;
        /// `validation_error`
        ValidationError = "validation_error" => InvalidInput;
        /// `timeout`
        Timeout = "timeout" => Timeout;
        /// `execution_error`
        ExecutionError = "execution_error" => ExecutionError;
        /// `cancelled`
        Cancelled = "cancelled" => Cancelled;
        /// `confirmation_timeout`
        ConfirmationTimeout = "confirmation_timeout" => ConfirmationTimeout;
    }
}

vocabulary! {
    /// The failure kinds of older planners.
    OldKind {
        /// `timeout`
        Timeout = "timeout" => Timeout;
        /// `transient`
        Transient = "transient" => Transient;
        /// `schema`
        Schema = "schema" => InvalidInput;
        /// `not_found`
        NotFound = "not_found" => NotFound;
        /// `internal`
        Internal = "internal" => Internal;
        /// `budget_exceeded`
        BudgetExceeded = "budget_exceeded" => BudgetExceeded;
        /// `circuit_open`
        CircuitOpen = "circuit_open" => CircuitOpen;
    }
}

impl From<ErrorKind> for Slug {
    fn from(kind: ErrorKind) -> Self {
        use ErrorKind as K;
        match kind {
            K::NotFound => Self::ToolNotFound,
            K::FsDenied => Self::FsDenied,
            K::PermissionDenied
            | K::NetDenied
            | K::UserDenied
            | K::ConfirmationTimeout
            | K::Aborted
            | K::BudgetExceeded
            | K::DepthExceeded
            | K::SerialNesting => Self::PermissionDenied,
            K::InvalidInput | K::KeyMismatch => Self::InvalidArgs,
            _ => Self::ToolFailed,
        }
    }
}

impl From<ErrorKind> for OldClass {
    fn from(kind: ErrorKind) -> Self {
        use ErrorKind as K;
        match kind {
            K::NotFound => Self::NotFound,
            K::UserDenied => Self::UserDenied,
            K::ConfirmationTimeout => Self::ConfirmationTimeout,
            K::InvalidInput | K::KeyMismatch => Self::ValidationError,
            K::PermissionDenied
            | K::FsDenied
            | K::NetDenied
            | K::Aborted
            | K::BudgetExceeded
            | K::DepthExceeded
            | K::SerialNesting => Self::PermissionDenied,
            K::Timeout | K::DeadlineExceeded | K::QueueTimeout => Self::Timeout,
            K::Cancelled | K::Interrupted => Self::Cancelled,
            _ => Self::ExecutionError,
        }
    }
}

impl From<ErrorKind> for OldKind {
    fn from(kind: ErrorKind) -> Self {
        use ErrorKind as K;
        match kind {
            K::InvalidInput | K::KeyMismatch => Self::Schema,
            K::Transient | K::RateLimited | K::Overloaded | K::SandboxError => Self::Transient,
            K::Timeout | K::QueueTimeout | K::DeadlineExceeded | K::ConfirmationTimeout => Self::Timeout,
            K::NotFound => Self::NotFound,
            K::BudgetExceeded => Self::BudgetExceeded,
            K::CircuitOpen => Self::CircuitOpen,
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V6: old → new → old is the identity, for all three vocabularies.
    #[test]
    fn an_old_word_survives_the_round_trip() {
        for word in Slug::ALL {
            assert_eq!(Slug::from(ErrorKind::from(*word)), *word);
        }
        for word in OldClass::ALL {
            assert_eq!(OldClass::from(ErrorKind::from(*word)), *word);
        }
        for word in OldKind::ALL {
            assert_eq!(OldKind::from(ErrorKind::from(*word)), *word);
        }
    }

    /// V6: the whole table, one line per code: slug, class, kind.
    #[test]
    fn every_code_has_its_old_words() {
        let table = "\
            not_found tool_not_found not_found not_found
            invalid_input invalid_args validation_error schema
            permission_denied permission_denied permission_denied internal
            fs_denied fs_denied permission_denied internal
            net_denied permission_denied permission_denied internal
            user_denied permission_denied user_denied internal
            confirmation_timeout permission_denied confirmation_timeout timeout
            aborted permission_denied permission_denied internal
            budget_exceeded permission_denied permission_denied budget_exceeded
            depth_exceeded permission_denied permission_denied internal
            serial_nesting permission_denied permission_denied internal
            rate_limited tool_failed execution_error transient
            overloaded tool_failed execution_error transient
            queue_timeout tool_failed timeout timeout
            circuit_open tool_failed execution_error circuit_open
            shutting_down tool_failed execution_error internal
            key_mismatch invalid_args validation_error schema
            key_in_progress tool_failed execution_error internal
            already_executed tool_failed execution_error internal
            transient tool_failed execution_error transient
            timeout tool_failed timeout timeout
            execution_error tool_failed execution_error internal
            output_invalid tool_failed execution_error internal
            output_too_large tool_failed execution_error internal
            panic tool_failed execution_error internal
            sandbox_error tool_failed execution_error transient
            deadline_exceeded tool_failed timeout timeout
            cancelled tool_failed cancelled internal
            interrupted tool_failed cancelled internal
            internal tool_failed execution_error internal";
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), ErrorKind::ALL.len());
        for row in rows {
            let kind: ErrorKind = row[0].parse().unwrap();
            let words =
                [Slug::from(kind).as_str(), OldClass::from(kind).as_str(), OldKind::from(kind).as_str()];
            assert_eq!(words, row[1..], "{kind}");
        }
    }
}
