//! The operators of a quantity: sums, differences and multiples, which panic on overflow or saturate.

/// The sum, the difference and the multiples of `$quantity`, which is a `$number` of its smallest
/// unit. On overflow the operators panic with these messages, in every build profile.
macro_rules! operators {
    ($quantity:ident, $number:ty, $overflow:literal, $negative:literal) => {
        impl $quantity {
            /// The sum, or the largest value on overflow.
            pub fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference; zero where `other` is larger.
            pub fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl std::ops::Add for $quantity {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.checked_add(other.0).expect($overflow))
            }
        }

        impl std::ops::AddAssign for $quantity {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl std::ops::Sub for $quantity {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.checked_sub(other.0).expect($negative))
            }
        }

        impl std::ops::SubAssign for $quantity {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl std::ops::Mul<$number> for $quantity {
            type Output = Self;
            fn mul(self, factor: $number) -> Self {
                Self(self.0.checked_mul(factor).expect($overflow))
            }
        }
    };
}

pub(crate) use operators;
