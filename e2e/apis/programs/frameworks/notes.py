# A server of notes by FastAPI, as its guide writes it: notes.py PORT.
import asyncio
import sys
from enum import Enum
from typing import List

import uvicorn
from fastapi import Body, FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

app = FastAPI()
notes = {}


def found(name):
    if name not in notes:
        raise HTTPException(status_code=404)
    return notes[name]


@app.get("/notes/{name}")
async def read(name: str):
    await asyncio.sleep(0.005)
    return found(name)


@app.put("/notes/{name}")
async def put(name: str, note: dict = Body()):
    await asyncio.sleep(0.005)
    notes[name] = {**note, "id": name}
    return notes[name]


@app.patch("/notes/{name}")
async def patch(name: str, change: dict = Body()):
    await asyncio.sleep(0.005)
    found(name).update(change)
    return notes[name]


@app.delete("/notes/{name}", status_code=204)
async def drop(name: str):
    await asyncio.sleep(0.005)
    found(name)
    del notes[name]


# Orders that FastAPI validates, by models of Pydantic.
class State(str, Enum):
    open = "open"
    paid = "paid"


class Line(BaseModel):
    sku: str
    count: int = Field(..., ge=1, le=9)


class Order(BaseModel):
    title: str = Field(..., max_length=5)
    state: State = State.open
    lines: List[Line] = []

    class Config:
        extra = "forbid"


@app.get("/orders")
async def orders(limit: int = Query(10, le=50)):
    return []


@app.post("/orders", status_code=201)
async def order(order: Order):
    return order


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
