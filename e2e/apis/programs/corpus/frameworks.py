"""Writes the document that FastAPI generates of a small API."""

import json
from datetime import date
from enum import Enum
from typing import Dict, List, Optional, Union

from fastapi import FastAPI, Header, Path, Query
from pydantic import BaseModel, Field, constr

app = FastAPI(title="items", servers=[{"url": "/"}])


class Colour(str, Enum):
    red = "red"
    blue = "blue"


class Owner(BaseModel):
    name: constr(min_length=1, max_length=20)
    age: Optional[int] = Field(None, ge=0, lt=150)


class Item(BaseModel):
    title: str = Field(..., regex="^[a-z]+$")
    price: float = Field(..., gt=0)
    colour: Colour = Colour.red
    tags: List[str] = Field([], max_items=3)
    attributes: Dict[str, int] = {}
    owner: Optional[Owner] = None
    size: Union[int, str] = 1
    due: Optional[date] = None

    class Config:
        extra = "forbid"


class ItemChange(BaseModel):
    title: Optional[str] = None
    price: Optional[float] = None


@app.get("/items/")
def list_items(limit: int = Query(10, ge=1, le=50), colour: Optional[Colour] = None):
    """Lists items."""


@app.post("/items/", status_code=201)
def create_item(item: Item):
    """Creates an item."""


@app.get("/items/{item_id}")
def read_item(item_id: int = Path(..., ge=1)):
    """Reads an item."""


@app.put("/items/{item_id}")
def replace_item(item: Item, item_id: int = Path(..., ge=1)):
    """Replaces an item."""


@app.patch("/items/{item_id}")
def change_item(item: ItemChange, item_id: int = Path(..., ge=1)):
    """Changes an item."""


@app.post("/items/{item_id}/buy")
def buy_item(item_id: int, owner: Owner, x_token: str = Header(...)):
    """Buys an item."""


@app.post("/batch")
def create_items(items: List[Item]):
    """Creates items."""


print(json.dumps(app.openapi()))
