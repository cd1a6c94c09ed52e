//! Members whose names stand inside of their types are printed as C declares them.

mod common;

use common::{compile, folder};
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{PointerTargets, Request, Wanted, read};
use tallyline_layout::print::pahole::{Printer, Style};

const SOURCE: &str = "\
typedef int row_t[3];
struct S {
  int (*array)[5];
  const short (*rows)[2][3];
  char (**far)[4];
  int (*function)(char);
  int (**table)(char, long);
  int *plain[7];
  void (*(*returning)(void (*)(int)))(char);
  __attribute__((noreturn)) void (*leaving)(void);
  row_t *row;
} s;
";

/// The assertions about the members, which hold for every spelling.
const ASSERTIONS: &str = "
struct S *p;
_Static_assert(sizeof(*p->array) == 5 * sizeof(int), \"array\");
_Static_assert(sizeof(*p->rows) == 6 * sizeof(short), \"rows\");
_Static_assert(sizeof(**p->far) == 4, \"far\");
_Static_assert(sizeof(p->plain) == 7 * sizeof(void *), \"plain\");
_Static_assert(sizeof(*p->row) == 3 * sizeof(int), \"row\");
void take(int number) { p->leaving(); p->returning(take)('a'); }
int call(void) { return p->function('a') + (*p->table)('a', 1); }
";

#[test]
fn what_is_printed_of_pointers_to_arrays_and_functions_compiles_to_the_same() {
    let Some(folder) = folder("declarators", "cc") else { return };
    let object = compile(&folder, "cc", "s.c", SOURCE, &["-g"]);
    let pointer_targets = PointerTargets::Contents;
    let request = Request { wanted: Wanted::named(["S"]), pointer_targets, ..Request::default() };
    let types = read(&object, &request).expect("readable");
    for expand_pointers in [false, true] {
        let mut printer = Printer::new(&types, Style { expand_pointers, ..Style::default() });
        printer.print(lookup::find(&types, b"S").expect("defined"));
        let text = String::from_utf8_lossy(printer.text()).into_owned();
        let program = format!("typedef int row_t[3];\n{text}{ASSERTIONS}");
        compile(&folder, "cc", "again.c", &program, &["-Werror", "-Wall"]);
    }
    std::fs::remove_dir_all(folder).expect("removable");
}
