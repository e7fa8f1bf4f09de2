"""The databases that are generated for this project: library, shop, clinic, tram company."""

from __future__ import annotations

from collections.abc import Mapping

from toolenvs.sources._sql_schema import Column, Schema, Table

_FIRST = (
    *("Ada", "Ben", "Carla", "Dario", "Elif", "Farid", "Greta"),
    *("Hugo", "Ines", "Jonas", "Kaya", "Lena", "Milan", "Nora"),
)
_LAST = (
    *("Adler", "Brandt", "Conti", "Dahl", "Evans", "Fischer"),
    *("Garcia", "Haas", "Ito", "Jansen", "Keller", "O'Neill"),
)
_CITIES = ("Bergen", "Cork", "Delft", "Faro", "Graz", "Lyon", "Malmo", "Turin")
_COUNTRIES = ("Austria", "Brazil", "Canada", "Denmark", "Egypt", "France", "Ghana", "Japan")

_ID = Column("id", "id", "id")


def _person(name: str = "name") -> Column:
    return Column(name, "name", "name", values=(_FIRST, _LAST))


def _city() -> Column:
    return Column("city", "group", "city", values=_CITIES)


_LIBRARY = Schema(
    "library",
    (
        Table(
            "branch", "branch", "branches", 7,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("North", "South", "Harbour", "Castle", "Market", "Garden", "River"),
                    ("Library", "Reading Room", "Annex"),
                )),
                _city(),
                Column("opened", "date", "opening date", low=1970, high=2015),
                Column("seats", "number", "number of seats", low=20, high=120, step=10),
            ),
        ),
        Table(
            "author", "author", "authors", 18,
            (
                _ID,
                _person(),
                Column("country", "group", "country", values=_COUNTRIES),
                Column("born", "number", "year of birth", low=1900, high=1995, missing=0.15),
            ),
        ),
        Table(
            "book", "book", "books", 45,
            (
                _ID,
                Column("title", "name", "title", values=(
                    ("The Last", "A Quiet", "The Golden", "Beyond the", "Letters from the", "No"),
                    ("Orchard", "Winter", "Bridge", "Signal", "Island", "Garden", "Mirror", "Road"),
                )),
                Column("genre", "group", "genre", values=(
                    "crime", "essay", "fantasy", "history", "poetry", "science",
                )),
                Column("published", "number", "year of publication", low=1950, high=2023),
                Column("pages", "number", "number of pages", low=80, high=720, step=20),
                Column("language", "group", "language", values=("en", "de", "fr", "es"),
                       missing=0.1),
                Column("author_id", "key", of="author"),
            ),
        ),
        Table(
            "copy", "copy", "copies", 90,
            (
                _ID,
                Column("book_id", "key", of="book"),
                Column("branch_id", "key", of="branch"),
                Column("price", "money", "price", low=4, high=40, step=2),
                Column("state", "group", "state", values=("new", "good", "worn", "damaged")),
                Column("checked", "date", "date of the last check", low=2019, high=2023,
                       missing=0.2),
            ),
        ),
        Table(
            "member", "member", "members", 40,
            (
                _ID,
                _person(),
                _city(),
                Column("level", "group", "level", values=("child", "adult", "student", "senior")),
                Column("joined", "date", "date of joining", low=2015, high=2023),
                Column("phone", "group", "phone number", values=(
                    "555-0101", "555-0112", "555-0134", "555-0148", "555-0163", "555-0179",
                ), missing=0.3),
            ),
        ),
        Table(
            "loan", "loan", "loans", 160,
            (
                _ID,
                Column("copy_id", "key", of="copy"),
                Column("member_id", "key", of="member"),
                Column("taken", "date", "loan date", low=2020, high=2023),
                Column("days", "number", "number of days", low=1, high=60),
                Column("fee", "money", "fee", low=0, high=12, missing=0.25),
            ),
        ),
    ),
    instances=3,
)  # fmt: skip

_SHOP = Schema(
    "shop",
    (
        Table(
            "supplier", "supplier", "suppliers", 9,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("Alpine", "Baltic", "Coastal", "Delta", "Eastern", "Fjord", "Grand"),
                    ("Goods", "Trading", "Supplies", "Works"),
                )),
                Column("country", "group", "country", values=_COUNTRIES),
                Column("rating", "number", "rating", low=1, high=10, missing=0.2),
            ),
        ),
        Table(
            "product", "product", "products", 40,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("Oak", "Steel", "Linen", "Glass", "Paper", "Copper", "Wool", "Cork"),
                    ("Lamp", "Chair", "Tray", "Clock", "Basket", "Mug", "Shelf", "Blanket"),
                )),
                Column("category", "group", "category", values=(
                    "kitchen", "lighting", "office", "outdoor", "storage", "textiles",
                )),
                Column("price", "money", "price", low=5, high=150, step=5),
                Column("stock", "number", "stock", low=0, high=200, step=5),
                Column("weight", "number", "weight", low=100, high=5000, step=100, missing=0.15),
                Column("supplier_id", "key", of="supplier"),
            ),
        ),
        Table(
            "customer", "customer", "customers", 45,
            (
                _ID,
                _person(),
                _city(),
                Column("segment", "group", "segment", values=("business", "private", "public")),
                Column("since", "date", "date of registration", low=2016, high=2023),
                Column("credit", "number", "credit limit", low=0, high=5000, step=250, missing=0.2),
            ),
        ),
        Table(
            "purchase", "purchase", "purchases", 120,
            (
                _ID,
                Column("customer_id", "key", of="customer"),
                Column("ordered", "date", "order date", low=2021, high=2023),
                Column("channel", "group", "channel", values=("web", "phone", "store", "partner")),
                Column("shipped", "date", "shipping date", low=2021, high=2023, missing=0.2),
                Column("postage", "money", "postage", low=0, high=20, step=2),
            ),
        ),
        Table(
            "item", "item", "items", 260,
            (
                _ID,
                Column("purchase_id", "key", of="purchase"),
                Column("product_id", "key", of="product"),
                Column("quantity", "number", "quantity", low=1, high=12),
                Column("unit_price", "money", "unit price", low=5, high=150, step=5),
                Column("discount", "number", "discount in percent", low=5, high=50, step=5,
                       missing=0.6),
            ),
        ),
        Table(
            "review", "review", "reviews", 90,
            (
                _ID,
                Column("product_id", "key", of="product"),
                Column("customer_id", "key", of="customer"),
                Column("stars", "number", "number of stars", low=1, high=5),
                Column("written", "date", "date of writing", low=2021, high=2023),
            ),
        ),
    ),
    instances=3,
)  # fmt: skip

_CLINIC = Schema(
    "clinic",
    (
        Table(
            "doctor", "doctor", "doctors", 14,
            (
                _ID,
                _person(),
                Column("specialty", "group", "specialty", values=(
                    "cardiology", "dermatology", "neurology", "oncology", "paediatrics",
                )),
                Column("hired", "date", "date of hiring", low=2000, high=2022),
                Column("salary", "number", "salary", low=60000, high=180000, step=5000),
            ),
        ),
        Table(
            "patient", "patient", "patients", 55,
            (
                _ID,
                _person(),
                _city(),
                Column("born", "date", "date of birth", low=1940, high=2018),
                Column("blood_type", "group", "blood type", values=("A", "B", "AB", "0"),
                       missing=0.2),
                Column("insurer", "group", "insurer", values=("Aegis", "Bona", "Corva"),
                       missing=0.1),
            ),
        ),
        Table(
            "medicine", "medicine", "medicines", 20,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("Alvo", "Benta", "Corti", "Dermo", "Exa", "Fluvo", "Grana", "Hexi"),
                    ("forte", "mite", "retard", "plus"),
                )),
                Column("form", "group", "form", values=("tablet", "syrup", "cream", "injection")),
                Column("price", "money", "price", low=2, high=90, step=4),
            ),
        ),
        Table(
            "visit", "visit", "visits", 170,
            (
                _ID,
                Column("patient_id", "key", of="patient"),
                Column("doctor_id", "key", of="doctor"),
                Column("day", "date", "date", low=2021, high=2023),
                Column("minutes", "number", "duration in minutes", low=5, high=90, step=5),
                Column("cost", "money", "cost", low=20, high=400, step=20),
                Column("reason", "group", "reason", values=(
                    "check-up", "emergency", "follow-up", "referral",
                ), missing=0.15),
            ),
        ),
        Table(
            "prescription", "prescription", "prescriptions", 140,
            (
                _ID,
                Column("visit_id", "key", of="visit"),
                Column("medicine_id", "key", of="medicine"),
                Column("packs", "number", "number of packs", low=1, high=6),
                Column("repeats", "number", "number of repeats", low=1, high=5, missing=0.4),
            ),
        ),
    ),
    instances=3,
)  # fmt: skip

_TRAM = Schema(
    "tram",
    (
        Table(
            "depot", "depot", "depots", 6,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("East", "West", "Hill", "Canal", "Mill", "Station"), ("Depot", "Yard"),
                )),
                _city(),
                Column("capacity", "number", "capacity", low=10, high=60, step=5),
            ),
        ),
        Table(
            "line", "line", "lines", 12,
            (
                _ID,
                Column("name", "name", "name", values=(
                    ("Blue", "Green", "Red", "Yellow", "Silver", "Violet"), ("Line", "Ring"),
                )),
                Column("zone", "group", "zone", values=("inner", "outer", "regional")),
                Column("opened", "date", "opening date", low=1960, high=2020),
                Column("stops", "number", "number of stops", low=6, high=40, step=2),
            ),
        ),
        Table(
            "vehicle", "vehicle", "vehicles", 35,
            (
                _ID,
                Column("plate", "name", "plate", values=(("TR", "TX", "TZ"), tuple(
                    f"{n:03}" for n in range(1, 60)
                ))),
                Column("model", "group", "model", values=("Avanto", "Citadis", "Flexity", "Urbos")),
                Column("built", "number", "year of construction", low=1985, high=2022),
                Column("seats", "number", "number of seats", low=30, high=120, step=10),
                Column("depot_id", "key", of="depot"),
            ),
        ),
        Table(
            "driver", "driver", "drivers", 30,
            (
                _ID,
                _person(),
                _city(),
                Column("hired", "date", "date of hiring", low=2005, high=2023),
                Column("bonus", "number", "bonus", low=100, high=2000, step=100, missing=0.3),
            ),
        ),
        Table(
            "trip", "trip", "trips", 200,
            (
                _ID,
                Column("line_id", "key", of="line"),
                Column("vehicle_id", "key", of="vehicle"),
                Column("driver_id", "key", of="driver"),
                Column("day", "date", "date", low=2022, high=2023),
                Column("passengers", "number", "number of passengers", low=5, high=200, step=5),
                Column("delay", "number", "delay in minutes", low=0, high=30, missing=0.1),
            ),
        ),
    ),
    instances=3,
)  # fmt: skip

SCHEMAS: Mapping[str, Schema] = {s.name: s for s in (_LIBRARY, _SHOP, _CLINIC, _TRAM)}
