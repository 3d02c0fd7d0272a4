//! Which radio is which access point or station of the scenario.

use wakeai_scenario::Experiment;

use super::Address;
use super::error::MediumError;

/// A place that a radio can take: an access point or a station of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) is_access_point: bool,
    /// The radio that alone may take it.
    pub(crate) reserved: Option<Address>,
    pub(crate) radio: Option<Address>,
}

/// All places, the access points first. A radio takes the first free one of its kind when it appears.
#[derive(Clone, Debug)]
pub(crate) struct Places(pub(crate) Vec<Place>);

impl Places {
    /// The places of `experiment`. `reserved` names the radios of some, by the address of the radio or of its first
    /// interface.
    pub(crate) fn new(
        experiment: &Experiment,
        reserved: &[(String, Address)],
    ) -> Result<Self, MediumError> {
        let access_points = experiment.bsss.iter().map(|bss| bss.name.clone());
        let mut access_points: Vec<String> = access_points.collect();
        if access_points.is_empty() {
            access_points.push("access_point".to_owned());
        }
        let place = |is_access_point| {
            move |name| Place { name, is_access_point, reserved: None, radio: None }
        };
        let stations = experiment.expand_stations().into_iter().map(|station| station.name);
        let all = access_points.into_iter().map(place(true)).chain(stations.map(place(false)));
        let mut places = Self(all.collect());
        for (name, address) in reserved {
            let known = places.0.iter_mut().find(|place| place.name == *name);
            let Some(place) = known else {
                let names: Vec<&str> = places.0.iter().map(|place| &*place.name).collect();
                let asked = format!("--radio {name}={address}: the scenario has no \"{name}\"");
                let remedy = format!("it has {}", names.join(", "));
                return Err(MediumError::Unsupported { asked, remedy });
            };
            place.reserved = Some(address.of_first_interface());
        }
        Ok(places)
    }

    /// The place of a radio that is known.
    pub(crate) fn of(&self, radio: Address) -> Option<usize> {
        self.0.iter().position(|place| place.radio == Some(radio))
    }

    /// Gives a radio a place: the one that is reserved for it, or else the first free one of its kind. `None` where none
    /// is left.
    pub(crate) fn take(&mut self, radio: Address, is_access_point: bool) -> Option<usize> {
        let own = Some(radio.of_first_interface());
        let free = |place: &Place| {
            place.radio.is_none()
                && place.reserved.is_none()
                && place.is_access_point == is_access_point
        };
        let reserved = self.0.iter().position(|place| place.reserved == own);
        let place = reserved.or_else(|| self.0.iter().position(free));
        let place = place?;
        self.0[place].radio = Some(radio);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use wakeai_scenario::Scenario;

    use super::*;

    const SCENARIO: &str = "name = \"a\"\nduration = \"1s\"\n[access_point]\nstandard = \"802.11g\"\n\
                            [[stations]]\nname = \"tablet\"\ncount = 2\n[[stations]]\nname = \"tv\"\n\
                            [[flows]]\nfrom = \"tv\"\nto = \"server\"\n[[conditions]]\nname = \"default\"\n";

    fn radio(number: u8) -> Address {
        Address([0x42, 0, 0, 0, number, 0])
    }

    fn places(reserved: &[(&str, &str)]) -> Result<Places, MediumError> {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let owned = |(name, address): &(&str, &str)| ((*name).to_owned(), address.parse().unwrap());
        Places::new(&scenario, &reserved.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn radios_take_the_places_of_their_kind_in_order_of_appearance() {
        let mut places = places(&[]).unwrap();
        let taken = [(0, false), (1, true), (2, false), (3, false), (4, false), (5, true)]
            .map(|(number, is_access_point)| places.take(radio(number), is_access_point));
        assert_eq!(taken, [Some(1), Some(0), Some(2), Some(3), None, None]);
        assert_eq!(places.of(radio(2)), Some(2));
    }

    #[test]
    fn a_place_is_kept_for_the_radio_that_is_named() {
        let mut own = places(&[("tablet1", "02:00:00:00:07:00")]).unwrap();
        assert_eq!(own.take(radio(1), false), Some(2));
        assert_eq!(own.take(radio(7), true), Some(1), "whatever it does");
        let unknown = places(&[("phone", "02:00:00:00:07:00")]).unwrap_err();
        let said = unknown.to_string();
        assert!(said.contains("no \"phone\"") && said.contains("tablet2, tv"), "{said}");
    }
}
