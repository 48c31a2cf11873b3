// SPDX-License-Identifier: MIT OR Apache-2.0
//! One description of a table: from it follow the table's type, what has been written of it so far,
//! its keys, and its canonical text.

use super::{At, Entry, Located, Mistake, Reader, Value};

/// Takes a value away again.
const NONE: &str = "none";

pub(crate) fn is_none(value: &Located<Value>) -> bool {
    matches!(&value.value, Value::Text(text) if text == NONE)
}

/// How the value of a key is read and written.
pub(crate) trait Kind {
    type Value: Clone;

    /// # Errors
    /// What is wrong with it and what would be right.
    fn read(value: &Located<Value>, key: &str) -> Result<Self::Value, Mistake>;

    /// As TOML, which reads back to the value.
    fn text(value: &Self::Value) -> String;
}

/// The value that a field holds, if there is one to be written.
pub(crate) trait Given<T> {
    fn given(&self) -> Option<&T>;
}

impl<T> Given<T> for T {
    fn given(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> Given<T> for Option<T> {
    fn given(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// ` key value` of each key but those `without`, for a line that people read.
pub(crate) fn plain(keys: &[(&str, String)], without: &[&str]) -> String {
    let shown = keys.iter().filter(|(key, _)| !without.contains(key));
    let one = |(key, value): &(&str, String)| format!(" {key} {}", value.trim_matches('"'));
    shown.map(one).collect()
}

/// What has been written of a table, as [`table!`] makes it.
pub(crate) trait Draft: Default {
    /// Applies the value of one key, which messages call `name`; `none` takes it away. False: the
    /// table has no such key.
    fn apply(&mut self, reader: &mut Reader, key: &str, value: &Located<Value>, name: &str)
    -> bool;

    /// [`Draft::apply`] to a key with its value.
    fn key(&mut self, reader: &mut Reader, entry: &Entry) -> bool {
        let key = &entry.key.value;
        self.apply(reader, key, &entry.value, key)
    }

    /// Where the table is written, and whether one of its values could not be read.
    fn about(&mut self) -> (&mut Option<At>, &mut bool);
}

impl Reader {
    /// [`Reader::put`], where `none` empties the slot.
    pub(crate) fn put_or_remove<T>(
        &mut self,
        slot: &mut Option<Located<T>>,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<T, Mistake>,
    ) {
        match is_none(value) {
            true => *slot = None,
            false => self.put(slot, value, read),
        }
    }

    /// Applies the table `name` over what was written before, key by key; `none` takes all of it
    /// away, and anything else is the value of the key `plain` alone.
    pub(crate) fn table<D: Draft>(
        &mut self,
        draft: &mut D,
        value: &Located<Value>,
        (name, plain): (&str, &str),
        unknown: impl Fn(&Located<String>) -> Mistake,
    ) {
        if is_none(value) {
            *draft = D::default();
            return;
        }
        let before = self.mistakes.len();
        match &value.value {
            Value::Table(entries) => {
                for entry in entries {
                    if !draft.key(self, entry) {
                        self.mistakes.push(unknown(&entry.key));
                    }
                }
            }
            _ => {
                *draft = D::default();
                draft.apply(self, plain, value, name);
            }
        }
        let (at, broken) = draft.about();
        *at = Some(value.at.clone());
        *broken |= self.mistakes.len() > before;
    }
}

/// Declares a table of a file: its type `$Table`, with a field for each key, and `$Draft`, what has
/// been written of it, each value with its place.
///
/// `FIELD: TYPE = DEFAULT, "key" as KIND;` is all there is to say of a key. A field's type is its
/// kind's value, or an `Option` of that. What else the two types hold stands in `beside` and
/// `draft beside`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Table:ident {
            $( $(#[$doc:meta])* $field:ident: $Type:ty = $default:expr, $key:literal as $Kind:ty; )*
        }
        $( beside { $( $(#[$beside_doc:meta])* $beside:ident: $Beside:ty = $beside_default:expr; )* } )?
        $(#[$draft_meta:meta])*
        struct $Draft:ident {
            $( $draft_beside:ident: $DraftBeside:ty; )*
        }
    ) => {
        $(#[$meta])*
        pub struct $Table {
            $( $(#[$doc])* pub $field: $Type, )*
            $($( $(#[$beside_doc])* pub $beside: $Beside, )*)?
        }

        impl Default for $Table {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $($( $beside: $beside_default, )*)?
                }
            }
        }

        $(#[$draft_meta])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $Draft {
            /// The table or the plain value that was written last.
            pub at: Option<$crate::text::At>,
            /// A value could not be read: what goes with it is not judged.
            pub broken: bool,
            $( pub $field: Option<
                $crate::text::Located<<$Kind as $crate::text::Kind>::Value>
            >, )*
            $( pub $draft_beside: $DraftBeside, )*
        }

        impl $crate::text::Draft for $Draft {
            fn apply(
                &mut self,
                reader: &mut $crate::text::Reader,
                key: &str,
                value: &$crate::text::Located<$crate::text::Value>,
                name: &str,
            ) -> bool {
                match key {
                    $( $key => reader.put_or_remove(&mut self.$field, value, |value| {
                        <$Kind as $crate::text::Kind>::read(value, name)
                    }), )*
                    _ => return false,
                }
                true
            }

            fn about(&mut self) -> (&mut Option<$crate::text::At>, &mut bool) {
                (&mut self.at, &mut self.broken)
            }
        }

        #[allow(dead_code, reason = "not every table needs all of it")]
        impl $Draft {
            /// The keys of the table.
            pub const KEYS: &[&str] = &[$($key),*];

            /// What was written, with defaults where nothing was.
            pub fn values(&self) -> $Table {
                $Table {
                    $( $field: match &self.$field {
                        Some(given) => given.value.clone().into(),
                        None => $default,
                    }, )*
                    $($( $beside: $beside_default, )*)?
                }
            }

            /// Where each key stands that was written.
            pub fn places(&self) -> impl Iterator<Item = (&'static str, &$crate::text::At)> {
                [$( ($key, self.$field.as_ref().map(|given| &given.at)) ),*]
                    .into_iter()
                    .filter_map(|(key, at)| Some((key, at?)))
            }
        }

        #[allow(dead_code, reason = "not every table needs all of it")]
        impl $Table {
            /// The keys that are not at their defaults and not among `known`: whoever handles some
            /// keys only learns of the others, also of those that do not exist yet.
            pub(crate) fn beyond(&self, known: &[&str]) -> Vec<&'static str> {
                let mut beyond = Vec::new();
                $(
                    let default: $Type = $default;
                    if self.$field != default && !known.contains(&$key) {
                        beyond.push($key);
                    }
                )*
                beyond
            }

            /// ` key value` of each key that is not at its default and not among `without`, for a line
            /// that people read.
            pub(crate) fn plain_text(&self, without: &[&str]) -> String {
                $crate::text::plain(&self.written(false), without)
            }

            /// ` key value` of each key that has a value.
            pub(crate) fn plain_text_of_all(&self) -> String {
                $crate::text::plain(&self.written(true), &[])
            }

            /// The keys that are not at their defaults, as TOML.
            pub(crate) fn keys_text(&self) -> Vec<String> {
                let written = self.written(false).into_iter();
                written.map(|(key, value)| format!("{key} = {value}")).collect()
            }

            /// Each key with its value as TOML, those at their defaults only if asked for.
            fn written(&self, defaults: bool) -> Vec<(&'static str, String)> {
                let mut keys = Vec::new();
                $(
                    let default: $Type = $default;
                    if (defaults || self.$field != default)
                        && let Some(value) = $crate::text::Given::<
                            <$Kind as $crate::text::Kind>::Value
                        >::given(&self.$field)
                    {
                        keys.push(($key, <$Kind as $crate::text::Kind>::text(value)));
                    }
                )*
                keys
            }
        }
    };
}

pub(crate) use table;
