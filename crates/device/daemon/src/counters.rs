//! Counters, and the metrics that are made of them.

use std::cell::Cell;

/// A counter. [`Count::less_one`] lowers a counter that gives the number of things that exist now.
#[derive(Debug, Default)]
pub struct Count(Cell<u64>);

impl Count {
    /// Adds `more`.
    pub fn add(&self, more: u64) {
        self.0.set(self.0.get().saturating_add(more));
    }

    /// Adds one.
    pub fn one(&self) {
        self.add(1);
    }

    /// Takes one away.
    pub fn less_one(&self) {
        self.0.set(self.0.get() - 1);
    }

    /// Raises the counter to `value`, if it is lower.
    pub fn raise_to(&self, value: u64) {
        self.0.set(self.0.get().max(value));
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Makes the types `Counters` (a [`Count`] each) and `Report` (their values at one moment) of a list of metric families:
///
/// ```ignore
/// counters! {
///     // The beginning of the families' names, and the counters without a family.
///     "wakeai_proxy", besides drifts "What other programs have changed.";
///     gauge "connections" None "Connections that are open now.": active;
///     counter "connections_refused" None "Connections that were refused, by reason.":
///         over_share(reason = "over_share") "The client holds its share.",
///         idle(reason = "idle") "It carried no byte for too long.";
/// }
/// ```
#[macro_export]
macro_rules! counters {
    (
        $prefix:literal $(, besides $($other:ident $other_doc:literal),+)?;
        $($kind:ident $base:literal $unit:ident $help:literal:
            $($name:ident $(($label:ident = $value:literal))? $($doc:literal)?),+;)+
    ) => {
        /// Counts since the start.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(pub(crate) $name: $crate::Count,)+)+
            $($(pub(crate) $other: $crate::Count,)+)?
        }

        /// The counts at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Report {
            $($(#[doc = $help] $(#[doc = $doc])? pub $name: u64,)+)+
            $($(#[doc = $other_doc] pub $other: u64,)+)?
        }

        impl Counters {
            pub(crate) fn report(&self) -> Report {
                Report {
                    $($($name: self.$name.get(),)+)+
                    $($($other: self.$other.get(),)+)?
                }
            }
        }

        impl Report {
            /// Every count with its name, in the order of their declaration.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![
                    $($((stringify!($name), self.$name),)+)+
                    $($((stringify!($other), self.$other),)+)?
                ]
            }

            /// Adds the families of the counts to a page.
            pub(crate) fn add_to(&self, page: &mut $crate::metrics::Page) {
                $(
                    let (base, unit) = (concat!($prefix, "_", $base), $crate::metrics::Unit::$unit);
                    page.$kind(base, unit, $help)
                        $(.sample(&[$((stringify!($label), $value))?], self.$name))+;
                )+
            }
        }
    };
}
