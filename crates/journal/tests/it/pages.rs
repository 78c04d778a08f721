//! Pages and keys by themselves.

use attache_journal::{Error, Page, SessionKey};
use proptest::prelude::*;

proptest! {
    #[test]
    fn parts_of_any_bytes_are_a_page_or_an_error(body: Vec<u8>, index: Vec<u8>) {
        if let Ok(page) = Page::from_parts(body.clone().into(), index.into()) {
            prop_assert!(!page.is_empty());
            prop_assert_eq!(&page.body()[..], &body[..]);
        }
    }

    #[test]
    fn a_page_survives_its_parts(entries in prop::collection::vec((any::<u8>(), any::<Vec<u8>>()), 1..20)) {
        let mut page = Page::builder();
        for (kind, bytes) in &entries {
            page.push(*kind, bytes).unwrap();
        }
        prop_assert_eq!(page.len(), entries.len());
        let page = page.build();
        let restored = Page::from_parts(page.body().clone(), page.index().clone()).unwrap();
        prop_assert_eq!(restored, page);
    }
}

#[test]
fn a_full_page_refuses_more_and_stays() {
    let mut page = Page::builder();
    page.push(0, &vec![0; Page::MAX_BYTES]).unwrap();
    assert!(matches!(page.push(0, b"x"), Err(Error::TooLarge { .. })));
    assert_eq!((page.len(), page.bytes()), (1, Page::MAX_BYTES));
    let mut page = Page::builder();
    for _ in 0..Page::MAX_ENTRIES {
        page.push(0, b"").unwrap();
    }
    assert!(matches!(page.push(0, b""), Err(Error::TooLarge { .. })));
}

#[test]
fn names_have_limits() {
    let long = "x".repeat(SessionKey::MAX_BYTES);
    assert!(SessionKey::new(&long, &long).is_ok());
    for bad in ["", "a\nb", "\0", &format!("{long}x")] {
        assert!(
            matches!(SessionKey::new(bad, "b"), Err(Error::InvalidKey { part: "tenant", .. })),
            "{bad:?}"
        );
        assert!(matches!(SessionKey::new("b", bad), Err(Error::InvalidKey { part: "session id", .. })));
    }
}
