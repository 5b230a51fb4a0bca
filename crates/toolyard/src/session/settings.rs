//! The settings that root sessions and forks have alike.

/// Writes the setters of these settings, which each kind of session describes in its own words. After `impl` come the
/// type and where in it the settings are.
macro_rules! settings_of_both {
    (
        impl $options:ident $([$($at:tt)*])?;
        $(#[$only_tools:meta])* only_tools;
        $(#[$capabilities:meta])* capabilities;
        $(#[$role:meta])* role;
        $(#[$max_in_flight:meta])* max_in_flight;
        $(#[$described:meta])* described;
    ) => {
        impl $options {
            $(#[$only_tools])*
            #[must_use]
            pub fn only_tools<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
                self $($($at)*)? .narrowing.tools = Some(names.into_iter().map(Into::into).collect());
                self
            }

            $(#[$capabilities])*
            #[must_use]
            pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
                self $($($at)*)? .narrowing.capabilities = Some(Arc::new(capabilities));
                self
            }

            $(#[$role])*
            #[must_use]
            pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
                self $($($at)*)? .narrowing.role = Some(role.into());
                self
            }

            $(#[$max_in_flight])*
            #[must_use]
            pub fn max_in_flight(mut self, max: usize) -> Self {
                let max = NonZeroUsize::new(max).expect("max_in_flight must not be zero");
                self $($($at)*)? .max_in_flight = Some(max);
                self
            }

            $(#[$described])*
            #[must_use]
            pub fn described(mut self, text: impl Into<Arc<str>>) -> Self {
                self $($($at)*)? .description = Some(text.into());
                self
            }
        }
    };
}

pub(super) use settings_of_both;
