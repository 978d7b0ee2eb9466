"""Four words that both screens show after a pairing: equal words mean that nothing stood between the two devices."""

from typing import Final

WORDS: Final = tuple(
    """
    acid acorn actor album alley amber angle ankle apple apron arena arrow atlas attic award bacon badge bagel
    bamboo banana banjo barrel basket beach beacon beetle berry bishop blanket bonus border bottle branch bread
    bridge bronze brush bubble bucket buffalo button cabin cactus camel camera candle canoe canyon carbon cargo
    carpet carrot castle cedar cello cement chalk cherry chess chicken cinema circle citrus clinic cloud clover
    cobra coconut coffee comet copper coral cotton coyote cradle crane crater cricket crystal cuckoo curtain cycle
    daisy dancer deer denim desert diamond diesel dinner doctor dolphin donkey dragon drama drum eagle easel echo
    eclipse elbow elephant ember engine envelope fabric falcon feather fence ferry fiddle filter finger flame flute
    forest fossil fountain fox galaxy garden garlic gecko ginger giraffe glacier globe goblet gorilla granite grape
    guitar hammer harbor harvest hazel helmet heron hockey honey hornet hotel hunter igloo indigo insect island
    ivory jacket jaguar jasmine jelly jewel jigsaw jungle kangaroo kayak kettle kitten kiwi koala ladder lagoon
    lantern laptop lemon leopard lettuce library lilac lizard lobster locker lotus magnet mango maple marble meadow
    melon mirror mitten monkey mosaic muffin mustard napkin nectar needle nickel noodle nugget oasis ocean octopus
    olive onion orange orchid otter oyster paddle panda papaya parrot pebble pelican pencil pepper piano pillow
    pilot pirate planet plum pocket pony poppy potato prairie puffin pumpkin puzzle pyramid quartz rabbit radish
    raven ribbon river robot rocket saddle salmon sandal saturn saxophone scarf shadow silver sparrow spider sunset
    temple tiger timber tomato tulip tunnel turtle velvet violin walnut window yellow zebra
    """.split()
)  # 256: one for each value of a byte


def words_of(digest: bytes) -> tuple[str, ...]:
    """One word for each byte."""
    return tuple(WORDS[byte] for byte in digest)
