use super::*;

#[test]
fn text_of_a_file_name_cannot_become_markup() {
    assert_eq!(escaped("<script>\"&"), "&lt;script&gt;&quot;&amp;");
}

#[test]
fn an_axis_ends_at_a_round_number() {
    assert_eq!(
        [326.2, 100.0, 99.0, 7.2].map(axis_end),
        [350.0, 100.0, 100.0, 7.5]
    );
}
